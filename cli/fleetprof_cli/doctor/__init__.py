"""The checks of `fleetprof doctor` on this machine."""
