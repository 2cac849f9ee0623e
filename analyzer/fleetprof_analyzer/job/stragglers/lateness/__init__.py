"""The time that a rank takes longer than its peers, and how sure that is."""
