"""The cluster of one node that is made of processes."""
