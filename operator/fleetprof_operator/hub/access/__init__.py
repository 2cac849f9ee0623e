"""Callers of the hub: the allowed ones, how often they call, and how much of it one of them may use."""
