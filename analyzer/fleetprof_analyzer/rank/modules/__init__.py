"""Time by module: the agent's marks of one iteration (fleetprof_agent.modules), and what they say of operators."""
