"""Slow and plain second implementations that results are held to, and generated input."""
