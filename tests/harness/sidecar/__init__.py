"""Peers of a sidecar: Kineto clients, processes, captures."""
