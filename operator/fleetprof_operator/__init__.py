"""The control plane: the hub, the operator that turns ProfileRequests into captures, and the injection of sidecars.

Guarantees: importing this package starts nothing. It knows only the contract (`fleetprof_api`).
"""
