"""Commands for whoever sets fleetprof up: manifests, checks, shell completion."""
