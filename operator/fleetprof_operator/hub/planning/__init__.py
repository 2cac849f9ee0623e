"""Which ranks a capture has, when it begins, and how long it may be."""
