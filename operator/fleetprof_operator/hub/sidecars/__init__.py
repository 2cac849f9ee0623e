"""The sidecars: their streams, what they may send, and what is known of their processes."""
