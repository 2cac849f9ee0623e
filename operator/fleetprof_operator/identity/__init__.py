"""Who speaks to the hub on Kubernetes, and by what the hub is known: tokens of pods, and our own certificates.

Guarantees: importing this package starts nothing.
"""
