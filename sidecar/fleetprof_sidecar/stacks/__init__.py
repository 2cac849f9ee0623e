"""Stacks of the processes here, for a hub that asks."""
