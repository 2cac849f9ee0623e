"""Which training processes there are, and what is known of each."""
