"""ProfileRequests → captures of the hub: pods, status, analyzer Jobs. The process `fleetprof-operator`.

Guarantees: importing this package starts nothing. What must be true is derived from a request, its pods and the hub,
so a restart at any moment finishes what was begun.
"""
