"""The search for late ranks: candidates, what each costs in a replay, and what both readings of the hosts agree on."""
