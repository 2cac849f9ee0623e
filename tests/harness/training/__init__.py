"""Training jobs and the whole system on this machine."""
