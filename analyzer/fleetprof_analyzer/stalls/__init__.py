"""The verdict on a job that does not move, from the stacks of its ranks and their latest collectives."""
