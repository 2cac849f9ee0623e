"""Programs that the sidecar runs as child processes, one per trace."""
