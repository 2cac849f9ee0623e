"""The limit of what one recording may take of the job's memory: watches, tells when it becomes too much, and measures.

Kineto takes little while it records and about ten times that when it writes the trace, after the window, where it can
no longer be stopped (docs/limits.md has the figures); to drop a recording it takes as much as to write what there is of
it. So what the writing will need is reserved from the beginning: it is known from an estimate, and where a recording
grows faster than estimated, from its growth, twice: it goes on growing until the drop takes effect. Ranks that share
the memory need as much each; one that writes already has taken its part, and what is left is without it.

Guarantees: time and readers are passed in; a look costs some tenths of a millisecond of the agent's own thread, and
the next one comes before what is left could be used up at the rate seen so far.
"""

from __future__ import annotations

from typing import Any, Callable

MIB = 1 << 20
# Left to the job whatever happens: less than that, and an allocation of its own would end it.
FLOOR_BYTES = 64 * MIB
# What the process grows by itself between two looks, without any recording.
NOISE_BYTES = 16 * MIB
# Peak while writing, of what the window took (measured: 7.5 to 12, more where freed memory was used again).
WRITE_FACTOR = 12
# What a process's first recording and the job's own start may take unforeseen, where an estimate is known.
FIRST_BYTES = 48 * MIB
# A job of which nothing is known must have room to drop what can be seen to grow.
BLIND_BYTES = 2 * NOISE_BYTES * WRITE_FACTOR
# A forecast from growth counts once the window took this share of the estimate: half of that is usual.
SURPRISE_SHARE = 4
LEAST_GIVEN_BACK_BYTES = 32 * MIB
WAIT_LOOK_NS = 100_000_000  # before the window
LEAST_LOOK_NS = 5_000_000
MOST_LOOK_NS = 25_000_000
WRITE_LOOK_NS = 50_000_000  # after it: only the peak is looked for
SHORT_LOOK_NS = 200_000_000  # how often a shortage is told


class MemoryGuard:
    """One recording. `memory`: memory.ProcessMemory; `give_back`: memory.give_back.

    `arm` has first_step and last_step of a window in steps, start_unix_ns and end_unix_ns of one by time, and
    memory_needed_bytes, the estimate of its peak above what the process has (absent: nobody knows), and ranks, how many
    record here at the same time: what is left must do for all of them.
    """

    def __init__(self, arm: dict[str, Any], memory: Any, give_back: Callable[[], bool]) -> None:
        self._memory = memory
        self._give_back = give_back
        self._first_step, self._last_step = _number(arm, "first_step"), _number(arm, "last_step")
        self._start, self._end = _number(arm, "start_unix_ns"), _number(arm, "end_unix_ns")
        self._needed = _number(arm, "memory_needed_bytes")
        self._ranks = max(1, _number(arm, "ranks"))
        self._has_begun = self._has_ended = False
        self._before = self._peak = memory.resident_bytes()
        self._peak_before = memory.peak_bytes()
        self._left_before = 0
        self._grown = 0
        self._looked = 0
        self.due = 0  # when to look again (Unix ns)
        self.shortage: dict[str, int | bool] = {}  # the fields of "short", once there is too little

    @property
    def has_begun(self) -> bool:
        """Tells whether the window was seen to begin."""
        return self._has_begun

    def look(self, now: int, step: int) -> bool:
        """Looks at what is left; True when the recording must end, or not begin. `step`: the latest one."""
        resident = self._memory.resident_bytes()
        self._peak = max(self._peak, resident)
        if self._first_step:
            self._has_begun = self._has_begun or step >= self._first_step - 1  # Kineto begins in that step's hook
            self._has_ended = self._has_ended or step >= self._last_step
        elif self._start:
            self._has_begun = self._has_begun or now >= self._start
            self._has_ended = self._has_ended or now >= self._end
        if self._has_ended:
            self.due = now + WRITE_LOOK_NS
            return False  # Kineto writes: nothing can stop it any more
        left = self._memory.headroom_bytes()
        if not self._has_begun:
            # A rank beside it may have begun already: what it has taken is the difference to the most that was left.
            self._before, self._left_before = resident, max(self._left_before, left)
        grown = max(0, resident - self._before)
        forecast = self._needed or BLIND_BYTES
        surprise = max(FIRST_BYTES, self._needed // SURPRISE_SHARE) if self._needed else NOISE_BYTES
        if grown > surprise:
            forecast = max(forecast, 2 * grown * WRITE_FACTOR)
        others = self._ranks - 1
        taken_by_others = max(grown * others, self._left_before - left - grown)
        wanted = max(0, forecast - grown) + max(0, forecast * others - taken_by_others) + FLOOR_BYTES
        if left and left < wanted:
            self.shortage = {"headroom_bytes": left, "needed_bytes": wanted, "recording": self._has_begun}
            self.due = now + SHORT_LOOK_NS
            return True
        self.due = now + self._pause(now, grown, left - wanted)
        return False

    def _pause(self, now: int, grown: int, slack: int) -> int:
        rate = (grown - self._grown) / max(1, now - self._looked)  # bytes per ns
        self._grown, self._looked = grown, now
        if not self._has_begun:
            return WAIT_LOOK_NS
        if rate <= 0 or slack < 0:
            return MOST_LOOK_NS
        # Half of the time in which growth, and the writing that it makes dearer, would use up what is left.
        return min(MOST_LOOK_NS, max(LEAST_LOOK_NS, int(slack / (2 * WRITE_FACTOR * rate * self._ranks))))

    def finish(self) -> dict[str, int]:
        """Gives back what the recording left behind; the fields of "memory". Takes up to some hundred ms."""
        highest = self._memory.peak_bytes()
        if highest > self._peak_before:
            self._peak = max(self._peak, highest)
        if self._memory.resident_bytes() - self._before >= LEAST_GIVEN_BACK_BYTES:
            self._give_back()
        return {
            "before_bytes": self._before,
            "peak_bytes": max(self._peak, self._before),
            "after_bytes": self._memory.resident_bytes(),
        }


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int and 0 <= value < 2**63 else 0
