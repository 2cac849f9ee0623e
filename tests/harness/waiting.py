"""Waits for what another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0

T = TypeVar("T")


def wait_until(
    happened: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S, *, every_s: float = 0.05
) -> T:
    """The first true answer of `happened`; fails the test with `what` when none comes."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if answer := happened():
            return answer
        time.sleep(every_s)
    raise AssertionError(f"waited {patience_s:.0f} s in vain for {what}")
