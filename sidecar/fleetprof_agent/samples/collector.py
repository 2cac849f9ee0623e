"""When Python's garbage collector held the job up, while its training thread is looked at.

A collection is in no trace, and nobody can look while it holds the interpreter: only the collector itself tells it from
any other silence. Guarantees: between `begin` and `end` only; a call of it takes less than a microsecond, short
collections are forgotten, and those that are kept are bounded; nothing is raised into the job.
Source: gc.callbacks.
"""

from __future__ import annotations

import gc
import time
from typing import Any, Callable

LEAST_NS = 1_000_000
MOST_KEPT = 500  # 34 bytes each: below 32 KiB


class CollectorMarks:
    """The collections of one capture."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._began = 0
        self._kept: list[tuple[int, int]] = []
        self._is_sent = False
        # A bound method is a new object each time, and the list of callbacks is searched for this one.
        self._callback = self._hear

    def begin(self) -> None:
        """From now on."""
        if self._callback not in gc.callbacks:
            gc.callbacks.append(self._callback)

    def end(self) -> None:
        """No more."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def flush(self, send: Callable[..., bool]) -> bool:
        """Sends what was heard as "collections", once; False when it could not be sent."""
        if self._kept and not self._is_sent:
            starts, durations = [start for start, _ in self._kept], [lasted for _, lasted in self._kept]
            self._is_sent = send("collections", start_unix_ns=starts, duration_ns=durations)
            return self._is_sent
        return True

    def _hear(self, phase: str, info: dict[str, Any]) -> None:
        try:
            now = self._clock()
            if phase == "start":
                self._began = now
            elif self._began:
                lasted = now - self._began
                if lasted >= LEAST_NS and len(self._kept) < MOST_KEPT:
                    self._kept.append((self._began, lasted))
                self._began = 0
        except Exception:
            pass
