"""Who holds the job up: the operations of all ranks matched, replayed and judged (docs/measures.md#stragglers)."""
