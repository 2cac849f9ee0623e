"""The sentences of a report and of a comparison: what the measures found, in words."""
