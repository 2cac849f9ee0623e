"""Captures whose traces are replayed: reading them, and what is predicted in advance."""
