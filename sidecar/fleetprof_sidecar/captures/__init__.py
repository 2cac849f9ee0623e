"""The captures of this sidecar: what the rules ask for is done here."""
