"""A Kubernetes cluster for the end-to-end tests, made, used and removed by `make cluster` and `make cluster-down`.

Guarantees: what a run leaves behind (processes, mounts, links, rules, folders) is removed by `down`, and by the next
`up` when a run was killed; nothing of another cluster on the machine is touched.
"""
