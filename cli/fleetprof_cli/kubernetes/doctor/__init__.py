"""The checks of `kubectl fleetprof doctor` in a cluster."""
