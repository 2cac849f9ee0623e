"""Analyzer Jobs: made, followed, and given access to their own capture only."""
