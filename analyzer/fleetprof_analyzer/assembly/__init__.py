"""Puts a report together, and a comparison of two: what the measures found, and its sentences."""
