"""One rank: its identity, its iterations, and its summary."""
