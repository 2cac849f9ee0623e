"""Stretches of a device's time whose work is not in the trace.

Guarantees: disjoint and sorted; nothing of the device that was recorded lies in them.
"""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from fleetprof_analyzer.trace.intervals import Union, covered_length, join, union, without
from fleetprof_analyzer.trace.trace import Bools, Int64s

_NO_TIMES = np.zeros(0, np.int64)


class Lost(IntEnum):
    """The reason why the work of a stretch is not in the trace."""

    PAUSED = 0  # the recorder: of that time there is no row at all, so it is no part of the window
    WORK_MISSING = 1  # it was launched there, and did not come into the trace
    NO_DEVICE_ROWS = 2  # a whole iteration has none, and no call that launched any


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Columns of equal length; `call` is the position of the call that launched the first of the work, -1: none."""

    start_ns: Int64s = field(default_factory=lambda: _NO_TIMES)
    end_ns: Int64s = field(default_factory=lambda: _NO_TIMES)
    call: Int64s = field(default_factory=lambda: _NO_TIMES)
    lost: Int64s = field(default_factory=lambda: _NO_TIMES)

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def times(self) -> Union:
        """All stretches."""
        return self.start_ns, self.end_ns

    def times_of(self, *lost: Lost) -> Union:
        """The stretches for one of these reasons."""
        return self._where(np.isin(self.lost, lost))

    def within(self, begin_ns: int, end_ns: int, *lost: Lost) -> int:
        """The part of [begin, end) that was not recorded for one of these reasons, ns."""
        before = covered_length(np.array([begin_ns, max(begin_ns, end_ns)]), self.times_of(*lost))
        return int(before[1] - before[0])

    def add(
        self, start_ns: Int64s, end_ns: Int64s, lost: Lost, busy: Union, call: Int64s | None = None
    ) -> "Unrecorded":
        """With [start, end) as well, shapes (n,), but for what is busy or not recorded already.

        `call`: the calls that stretches begin with.
        """
        starts, ends = without(union(start_ns, end_ns), join(busy, self.times))
        of = np.full(len(starts), -1, np.int64)
        if call is not None and len(call):
            order = np.argsort(start_ns, kind="stable")
            at = np.minimum(np.searchsorted(start_ns[order], starts), len(order) - 1)
            of = np.where(start_ns[order][at] == starts, call[order][at], -1)
        columns = (
            np.concatenate(pair)
            for pair in (
                (self.start_ns, starts),
                (self.end_ns, ends),
                (self.call, of),
                (self.lost, np.full(len(starts), int(lost), np.int64)),
            )
        )
        start, *others = columns
        order = np.argsort(start, kind="stable")
        return Unrecorded(start[order], *(column[order] for column in others))

    def _where(self, mask: Bools) -> Union:
        return self.start_ns[mask], self.end_ns[mask]


NOTHING = Unrecorded()
