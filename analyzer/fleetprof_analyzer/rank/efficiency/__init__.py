"""Floating-point operations from the shapes that a trace says."""
