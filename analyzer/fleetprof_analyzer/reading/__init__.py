"""Bytes in, `Trace` out: whatever is in the file, within limits, and with every loss counted."""
