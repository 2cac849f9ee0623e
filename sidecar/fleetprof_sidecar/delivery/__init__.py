"""From the sidecar's spool into the object store."""
