"""One rank's communication: its collectives, their groups, and the chain of operations that ties ranks together."""
