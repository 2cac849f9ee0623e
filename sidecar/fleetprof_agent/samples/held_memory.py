"""The memory that the training process holds of its own before a recording begins: whether it grows by itself.

A recording takes memory, and keeps freed blocks from being used again, so that nothing can be told while it lasts.
Guarantees: at most MOST_KEPT looks, over the whole time since the order; a look takes some microseconds; nothing is
raised. Source: /proc/self/statm (proc(5)).
"""

from __future__ import annotations

import os
import time
from typing import Callable

from fleetprof_agent.errors import pass_on

LEAST_PAUSE_NS = 20_000_000
MOST_KEPT = 128  # 18 bytes each


class HeldMemory:
    """The looks of one capture."""

    def __init__(self, proc: str = "/proc", clock: Callable[[], int] = time.time_ns) -> None:
        self._path = proc + "/self/statm"
        self._clock = clock
        self._pause = LEAST_PAUSE_NS
        self._next = 0
        self._kept: list[tuple[int, int]] = []
        self._is_sent = False

    def look(self) -> None:
        """Notes what is held, where the latest look is old enough; the more looks there are, the longer ago."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._pause
        held = self._read()
        if held is None:
            return
        self._kept.append((now, held))
        if len(self._kept) > MOST_KEPT:
            del self._kept[::2]
            self._pause *= 2

    def flush(self, send: Callable[..., bool]) -> bool:
        """Sends the looks as "held", once; False when they could not be sent."""
        if self._kept and not self._is_sent:
            times, sizes = [at for at, _ in self._kept], [held for _, held in self._kept]
            self._is_sent = send("held", at_unix_ns=times, own_bytes=sizes)
            return self._is_sent
        return True

    def _read(self) -> int | None:
        """Resident bytes that are no file's and shared with nobody."""
        try:
            with open(self._path, "rb") as file:
                words = file.read(80).split()
        except OSError as error:
            pass_on(error)
            return None
        if len(words) < 3 or not (words[1].isdigit() and words[2].isdigit()):
            return None
        return max(0, int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")
