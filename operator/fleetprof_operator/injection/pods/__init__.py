"""The change of one pod: what the sidecar needs, and whether the pod would still be admitted."""
