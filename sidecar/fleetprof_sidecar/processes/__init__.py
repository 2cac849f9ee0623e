"""The training processes that are there, and what is known of each."""
