"""The `fleetprof` command: local mode without a cluster, and the same verbs for a cluster later.

Guarantees: machine-readable output goes to stdout, everything for people to stderr; exit codes are documented.
"""
