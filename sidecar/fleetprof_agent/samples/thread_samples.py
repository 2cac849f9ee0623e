"""The place of the training thread in its Python code during a capture's window, and whether it gets a core.

A trace shows the host's time between two operators as nothing at all; a look at the thread's stack now and then gives
that time a line of code, and the kernel's account of its scheduling tells Python from a wait for a core.

Guarantees: nothing but the collector's marks runs in the job's threads; no frame is referred to after it was read;
frames of ours are left out; time, samples, stacks, places and texts are bounded, and looks together take at most a
hundredth of the time (a look that takes longer comes less often); nothing is raised: what fails ends the sampling.
Called from one thread at a time.
Sources: sys._current_frames(), /proc/self/task/*/schedstat (proc(5)), clock_gettime(2), getrusage(2).
"""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.samples.collector import CollectorMarks
from fleetprof_agent.samples.frames import read_stack
from fleetprof_agent.samples.held_memory import HeldMemory
from fleetprof_agent.samples.schedule import NOT_READ, SchedulerFigures
from fleetprof_agent.samples.stacks import StackTable

SECOND_NS = 1_000_000_000
MOST_SAMPLES = 600
SAMPLES_PER_WINDOW = 300
LEAST_INTERVAL_NS = 2_000_000
SHARE = 100  # a look is followed by so many times its own time without one
# What waking up for it takes besides (bench/cost/thread_samples.py): beside a training, caches are cold.
WAKE_NS = 65_000
# A window that takes longer than was expected is sampled to its end, ever more rarely: up to four times as long.
SLOWER_AT = (300, 450)
LONGEST_LOOK_AHEAD_NS = SECOND_NS // 10
STEPS_BEFORE = 2  # sampled before the window, so that its first iteration is whole
ROWS_PER_CHUNK = 150  # 120 bytes each at the most: below 32 KiB
COLUMNS = (
    "at_unix_ns",
    "stack",
    "ran_ns",
    "waited_ns",
    "process_ran_ns",
    "process_waited_ns",
    "involuntary_switches",
)

Send = Callable[..., bool]


class ThreadSamples:
    """The samples of one capture. `thread`: threading.get_ident() of the training thread.

    `arm` has first_step and last_step of a window in steps (measured_step where modules are marked behind it),
    start_unix_ns and end_unix_ns of one by time. `step_ns`: how long an optimizer step takes, 0 where unknown.
    """

    def __init__(
        self,
        arm: dict[str, Any],
        thread: int,
        schedule: SchedulerFigures,
        step_ns: int,
        read_stack: Callable[[int], list[tuple[Any, int]]] = read_stack,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        # Our hooks run in the iteration behind the measured ones.
        self._first_step = _number(arm, "first_step")
        self._last_step = _number(arm, "measured_step") or _number(arm, "last_step")
        self._start, self._end = _number(arm, "start_unix_ns"), _number(arm, "end_unix_ns")
        self._thread = thread
        self._schedule = schedule
        self._step_ns = step_ns
        self._read_stack = read_stack
        self._cpu_clock = cpu_clock
        window_ns = (self._last_step - self._first_step + 1) * step_ns if self._first_step else self._end - self._start
        self._interval = max(LEAST_INTERVAL_NS, window_ns // SAMPLES_PER_WINDOW)
        self._rows: list[tuple[int | None, ...]] = []
        self._stacks = StackTable()
        self._collector = CollectorMarks(thread)
        self._memory = HeldMemory()
        self._sent = 0
        self.due = 0  # when to be called again (Unix ns)
        # Without a lock on the interpreter the thread would run on while its frames are read.
        is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
        self.is_over = not is_locked or not (self._first_step or self._start)

    def tick(self, now: int, step: int) -> None:
        """Looks at the thread when it is time to. `step`: the latest optimizer step."""
        if self.is_over or now < self.due:
            return
        try:
            # From now on, not only in the window: a collection of a second comes once in a hundred short iterations.
            self._collector.begin()
            wait = self._wait_ns(now, step)
            if wait > 0:
                self._memory.look()
                self.due = now + min(max(wait // 2, LEAST_INTERVAL_NS), LONGEST_LOOK_AHEAD_NS)
            elif self._has_ended(now, step) or len(self._rows) >= MOST_SAMPLES:
                if 0 < len(self._rows) < MOST_SAMPLES:
                    self._look()  # so that the last iteration is whole
                self.end()
            else:
                began = self._cpu_clock()
                self._look()
                # The clock of the work, not of the time that passed: a busy machine does not make looks dear.
                cost = self._cpu_clock() - began
                if len(self._rows) in SLOWER_AT:
                    self._interval *= 2
                self.due = now + max(self._interval, SHARE * (cost + WAKE_NS))
        except Exception as error:
            pass_on(error)
            report_error()
            self.end()

    def end(self) -> None:
        """No more looks; what was seen can be sent."""
        self.is_over = True
        self._collector.end()
        self._stacks.forget_code()
        self._schedule.close()

    def flush(self, send: Send) -> bool:
        """Sends what has not been sent; False when something is left. Places and stacks go before what names them."""
        if not self._rows:
            return True
        if not self._stacks.flush(send):
            return False
        cores = self._schedule.cores
        while self._sent < len(self._rows):
            rows = self._rows[self._sent : self._sent + ROWS_PER_CHUNK]
            columns = {name: [row[number] for row in rows] for number, name in enumerate(COLUMNS)}
            if not send("thread", **columns, **cores):
                return False
            self._sent += len(rows)
        return self._collector.flush(send) and self._memory.flush(send)

    def _look(self) -> None:
        if not self._rows:
            self._collector.drop_stacks()
        frames = self._read_stack(self._thread)
        at = time.time_ns()  # not before: the look may have waited for the interpreter, while the thread went on
        for ended, collecting in self._collector.take_stacks():
            self._rows.append((ended, self._stacks.intern(collecting), *NOT_READ))
        self._rows.append((at, self._stacks.intern(frames), *self._schedule.read()))

    def _wait_ns(self, now: int, step: int) -> int:
        """The time until the window, or until what is sampled before it; an estimate where it begins with a step."""
        if self._first_step:
            return (self._first_step - 1 - STEPS_BEFORE - step) * max(self._step_ns, 1)
        return self._start - now

    def _has_ended(self, now: int, step: int) -> bool:
        return step >= self._last_step if self._first_step else now >= self._end


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int and 0 <= value < 2**63 else 0
