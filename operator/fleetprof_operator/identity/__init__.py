"""Identities of the hub and its callers on Kubernetes: tokens of pods, and our own certificates.

Guarantees: importing this package starts nothing.
"""
