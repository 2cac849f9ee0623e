"""All ranks together: the report, its findings, and how ranks differ."""
