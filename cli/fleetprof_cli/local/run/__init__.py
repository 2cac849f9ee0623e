"""`fleetprof run`: the command, the sidecar beside it, and the files of one run."""
