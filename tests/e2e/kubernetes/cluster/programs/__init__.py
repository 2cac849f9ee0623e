"""What the cluster is built of: programs from Go modules and from Debian."""
