"""The training job of `fleetprof demo`; a folder of its own, because a script's folder is first on its sys.path."""
