"""Reports in notebooks: `fleetprof.load("…")`.

Guarantees: reads only; whatever is read, is read within the analyzer's limits.
"""
