"""What `fleetprof doctor` checks on this machine."""
