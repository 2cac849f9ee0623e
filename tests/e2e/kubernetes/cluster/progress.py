"""Says on standard error what takes time, so that nobody takes a build for a hang."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """One line, at once."""
    print(f"cluster: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says `what` before the work and its duration after it."""
    begin = time.monotonic()
    say(f"{what} …")
    yield
    say(f"{what}: {time.monotonic() - begin:.1f} s")
