"""The one error of this package: a cluster cannot be had, and what to do about it."""


class Refusal(Exception):
    """Why there is no cluster, and the next step, in one sentence each. Tests skip with it; `make cluster` fails."""
