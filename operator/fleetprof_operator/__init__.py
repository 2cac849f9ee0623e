"""The control plane: the hub (who is there, what was asked, the ledger, upload grants), needing no Kubernetes.

Guarantees: importing this package starts nothing. It knows only the contract (`fleetprof_api`).
"""
