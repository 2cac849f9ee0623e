"""The ranks of a capture, its begin, and the length that it may have."""
