"""The timeline of a capture at every level of detail, as the web page draws it (docs/timeline-format.md)."""
