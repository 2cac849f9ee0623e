"""Makes the slices of a report, which its page shows, and stores them with it."""
