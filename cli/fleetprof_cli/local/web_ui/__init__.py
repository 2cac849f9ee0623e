"""The web UI of local mode."""
