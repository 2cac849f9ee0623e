"""Planted stacks of jobs, with what is true of each."""
