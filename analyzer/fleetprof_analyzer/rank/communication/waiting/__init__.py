"""The waits of a rank's host for its device."""
