"""The recorded window that every measure of a rank looks at (docs/measures.md#recorded-window)."""
