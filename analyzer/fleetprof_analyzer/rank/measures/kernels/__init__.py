"""Kernels and their launches, by name, by class and by operator."""
