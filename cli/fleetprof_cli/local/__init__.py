"""Local mode: the hub, the sidecar and the state directory on one machine."""
