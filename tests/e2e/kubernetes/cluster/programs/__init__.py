"""The parts of the cluster: programs from Go modules and from Debian."""
