"""The root of our exceptions: `except FleetprofError` takes what ours raise on purpose, and nothing else.

The agent, which imports nothing of ours, has a root of its own (`fleetprof_agent.errors`).
"""


class FleetprofError(Exception):
    """Something that our code refuses, or cannot do, and says so."""
