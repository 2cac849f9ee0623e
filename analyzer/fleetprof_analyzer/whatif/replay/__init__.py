"""The replay of a whole capture: courses of its ranks, what each row waits for, and the graph of them all."""
