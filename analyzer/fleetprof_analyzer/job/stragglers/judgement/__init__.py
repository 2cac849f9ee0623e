"""A verdict as facts, before its sentences: the reason of it, and what it cannot tell."""
