"""Puts a report together: what the measures found, and its sentences."""
