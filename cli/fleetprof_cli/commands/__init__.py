"""One module per command of `fleetprof`, each with its `command`; loaded only when it is used."""
