"""The output for people on a terminal: progress, states and reports."""
