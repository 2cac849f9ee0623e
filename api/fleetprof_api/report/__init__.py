"""The report: its types, and those of everything that it holds."""
