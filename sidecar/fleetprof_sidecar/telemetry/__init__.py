"""What the sidecar tells of its trainers all the time, captured or not."""
