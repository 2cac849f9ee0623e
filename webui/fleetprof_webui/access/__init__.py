"""The people who ask, and what they may see and do."""
