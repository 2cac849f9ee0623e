"""`kubectl fleetprof`: the same commands over a cluster, through the Kubernetes API and the object store alone.

Guarantees: everything happens with the user's own rights; importing this package starts nothing.
"""
