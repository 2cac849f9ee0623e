"""The answer that a reader came for: one sentence, what speaks for it, and what to do next."""
