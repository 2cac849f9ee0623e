"""The same job on another number of ranks: which groups grow, what their transfers take then, and the grown graph."""
