"""The optimizer steps of this process."""
