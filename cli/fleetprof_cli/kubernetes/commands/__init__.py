"""The commands of `kubectl fleetprof`, each in the module of its name."""
