"""Turns to build, and to change the cluster: one process at a time, of all on this machine.

Guarantees: two commands at once wait for each other where they do the same, and so do two runs of the tests.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.places import CACHE
from cluster.progress import say


@contextmanager
def alone(what: str = "cluster") -> Iterator[None]:
    """No other process has `what` meanwhile: the cluster, the tests on it, or what is being built."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{what}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process has the {what}; waiting for its end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
