"""The hub: who is there, what was asked, the ledger, upload grants. A library that needs no Kubernetes.

Guarantees: importing this package starts nothing. It knows only the contract (`fleetprof_api`); local mode and the
Kubernetes operator put the same hub to work.
"""
