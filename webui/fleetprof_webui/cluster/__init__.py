"""The service in a cluster: a process of its own, many people, each with their own rights."""
