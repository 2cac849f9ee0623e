"""One request's ledger: its lines, its outcome, and how it is written and sent."""
