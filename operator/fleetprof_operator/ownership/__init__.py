"""Owners of requests: one release per namespace, and one process of a release at a time."""
