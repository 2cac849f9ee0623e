"""Jobs as policies see them, healthy and not."""
