"""A control group with a limit of memory, and a job that needs much of it."""
