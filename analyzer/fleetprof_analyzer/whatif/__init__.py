"""Predicts an iteration under changes: the replay of a capture, its edits, and the answers with their intervals."""
