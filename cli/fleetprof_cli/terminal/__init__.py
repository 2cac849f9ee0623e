"""What people see on a terminal: progress, states and reports."""
