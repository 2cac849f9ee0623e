"""Idle time of devices, by cause."""
