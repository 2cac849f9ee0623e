"""How much longer a rank takes than its peers, and how sure that is."""
