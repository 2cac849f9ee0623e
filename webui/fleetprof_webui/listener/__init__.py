"""Web servers of ours: what listens, whom it hears, and how many connections it keeps."""
