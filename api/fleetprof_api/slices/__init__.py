"""The slices of a report: a typed document for each part of its page, bounded in bytes."""
