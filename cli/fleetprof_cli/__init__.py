"""The `fleetprof` command, local mode without a cluster; and `kubectl fleetprof`, the same verbs for one (`cluster/`).

Guarantees: machine-readable output goes to stdout, everything for people to stderr; exit codes are documented.
"""
