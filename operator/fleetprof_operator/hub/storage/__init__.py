"""The object store as the hub uses it."""
