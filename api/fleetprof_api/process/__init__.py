"""The common part of our processes: logs, settings, addresses, pauses, its control group's limit.

Guarantees: needs the standard library alone, so that the smallest of our processes can use it.
"""
