"""Pods that the sidecar holds back, and how they go on without it."""
