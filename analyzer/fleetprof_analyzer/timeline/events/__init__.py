"""The events of a cut: whose clock, which numbers, which marks."""
