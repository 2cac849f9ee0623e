"""The work of a rank between its collectives."""
