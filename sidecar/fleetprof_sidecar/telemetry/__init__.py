"""The sidecar's reports on its trainers all the time, captured or not."""
