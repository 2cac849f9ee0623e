"""Which operations of different ranks belong together where order and numbers do not say it."""
