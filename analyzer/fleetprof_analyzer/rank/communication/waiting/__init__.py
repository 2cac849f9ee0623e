"""When the host of a rank waits for its device."""
