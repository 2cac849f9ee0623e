"""The connection to the hub, and what is said over it."""
