"""A rank's trace in memory, and what is done with its columns everywhere: intervals, order, names, classes."""
