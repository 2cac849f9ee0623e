"""The spans in which Python's garbage collector held the job up, while its training thread is looked at.

A collection is in no trace, and nobody can look while it holds the interpreter: only the collector itself tells it from
any other silence. A look afterwards finds the thread at its next line. So the stack is read at the end of a long
collection, in the thread that collects. Guarantees: between `begin` and `end` only; a call of it takes less than a
microsecond, a hundredth of a long collection for its stack; short collections are forgotten, and those that are kept
are bounded; nothing is raised into the job.
Source: gc.callbacks.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from typing import Any, Callable, Iterator

from fleetprof_agent.errors import pass_on
from fleetprof_agent.samples.frames import read_stack

LEAST_NS = 1_000_000
LEAST_WITH_STACK_NS = 2_000_000
MOST_KEPT = 500  # 34 bytes each: below 32 KiB


class CollectorMarks:
    """The collections of one capture. `thread`: threading.get_ident() of the training thread."""

    def __init__(
        self,
        thread: int,
        clock: Callable[[], int] = time.time_ns,
        read_stack: Callable[[int], list[tuple[Any, int]]] = read_stack,
    ) -> None:
        self._thread = thread
        self._clock = clock
        self._read_stack = read_stack
        self._stacks: deque[tuple[int, list[tuple[Any, int]]]] = deque(maxlen=MOST_KEPT)
        self._began = 0
        self._kept: deque[tuple[int, int]] = deque(maxlen=MOST_KEPT)  # the latest
        self._is_sent = False
        # A bound method is a new object each time, and the list of callbacks is searched for this one.
        self._callback = self.hear

    def begin(self) -> None:
        """Begins to note garbage collections."""
        if self._callback not in gc.callbacks:
            gc.callbacks.append(self._callback)

    def end(self) -> None:
        """Stops noting them."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def drop_stacks(self) -> None:
        """Forgets where the thread was in those before the first look."""
        self._stacks.clear()

    def take_stacks(self) -> Iterator[tuple[int, list[tuple[Any, int]]]]:
        """(end, stack) of each long collection in the training thread, once."""
        while self._stacks:
            yield self._stacks.popleft()

    def flush(self, send: Callable[..., bool]) -> bool:
        """Sends what was heard as "collections", once; False when it could not be sent."""
        if self._kept and not self._is_sent:
            starts, durations = [start for start, _ in self._kept], [lasted for _, lasted in self._kept]
            self._is_sent = send("collections", start_unix_ns=starts, duration_ns=durations)
            return self._is_sent
        return True

    def hear(self, phase: str, info: dict[str, Any]) -> None:
        """A function for gc.callbacks: a collection begins ("start") or ends ("stop"). Raises nothing."""
        try:
            now = self._clock()
            if phase == "start":
                self._began = now
            elif self._began:
                lasted = now - self._began
                if lasted >= LEAST_NS:
                    self._kept.append((self._began, lasted))
                    if lasted >= LEAST_WITH_STACK_NS and threading.get_ident() == self._thread:
                        self._stacks.append((now, self._read_stack(self._thread)))
                self._began = 0
        except Exception as error:
            pass_on(error)
