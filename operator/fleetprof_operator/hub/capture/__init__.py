"""The stages of one request in the hub, from its target to its report."""
