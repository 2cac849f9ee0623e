"""What `kubectl fleetprof doctor` checks in a cluster."""
