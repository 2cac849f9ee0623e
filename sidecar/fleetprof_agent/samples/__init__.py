"""Samples of the device and of the training thread."""
