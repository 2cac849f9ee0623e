"""The gaps in which a device was idle, each with the call that launched what ends it.

Guarantees: pure; gaps are disjoint and sorted, and with the device's work they cover its span.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls, Positions
from fleetprof_analyzer.trace.intervals import Union
from fleetprof_analyzer.trace.ordering import distinct, order_by
from fleetprof_analyzer.trace.trace import Bools, Int64s

_SHORTEST_DELAY_NS: Final = 5_000
_LONGEST_DELAY_NS: Final = 20_000
NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle gaps [begin, end) of a device and the call [call_start, call_end) on `thread` that launched what ends each.

    Columns of equal length; thread is -1 where the trace has no launch for it.
    """

    begin_ns: Int64s
    end_ns: Int64s
    call_start_ns: Int64s
    call_end_ns: Int64s
    thread: Int64s

    def select(self, mask: Bools | npt.NDArray[np.intp]) -> "Gaps":
        """The gaps where `mask` is true, or at these positions."""
        return Gaps(*(getattr(self, name)[mask] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Launched:
    """A device's work, when any of it ran, and for each row the position of its call in `calls`, -1 for none."""

    work: DeviceWork
    busy: Union
    calls: LaunchCalls
    call: Positions

    @classmethod
    def of(cls, work: DeviceWork, calls: LaunchCalls) -> "Launched":
        """What the gaps of this work are found and explained by."""
        return cls(work, work.busy(), calls, calls.of(work.rows))

    @property
    def last_end_ns(self) -> int:
        """Where work of some length ends."""
        _, ends = self.busy
        return int(ends[-1]) if len(ends) else int(self.work.rows.start_ns.min())


def find_gaps(launched: Launched) -> Gaps:
    """The gaps that end where work begins, from the first start on."""
    work, calls = launched.work, launched.calls
    starts, ends = launched.busy
    # Rows of no length are no work, but the first of them begins the span.
    begin = np.concatenate(([work.rows.start_ns.min()], ends))[: len(starts)]
    begin, end = begin[begin < starts], starts[begin < starts]
    lasting = work.rows.duration_ns > 0
    rows, call = work.rows.select(lasting), launched.call[lasting]
    known = call >= 0
    call_start = np.full(len(rows), NEVER)
    call_start[known] = calls.calls.start_ns[call[known]]
    # Of several rows that end a gap together, the one that was launched first.
    order = order_by(rows.start_ns, call_start, rows.correlation)
    first = order[np.searchsorted(rows.start_ns[order], end)]
    call, known = call[first], known[first]
    if not known.any():
        nothing = np.zeros(len(end), np.int64)
        return Gaps(begin, end, nothing, nothing, np.full(len(end), -1, np.int64))
    return Gaps(
        begin_ns=begin,
        end_ns=end,
        call_start_ns=calls.calls.start_ns[call],
        call_end_ns=calls.calls.end_ns[call],
        thread=np.where(known, calls.calls.place[call], -1).astype(np.int64),
    )


def are_fresh(gaps: Gaps) -> Bools:
    """Gaps whose work was launched when the device was idle already."""
    return (gaps.thread >= 0) & (gaps.call_start_ns >= gaps.begin_ns)


def find_edges(launched: Launched, borders_ns: Int64s) -> tuple[Gaps, Gaps]:
    """The gap from the first border to the device's first row, and from its last work to the last border, if any."""
    rows, calls, call = launched.work.rows, launched.calls, launched.call
    known = call >= 0
    first, last = int(rows.start_ns.min()), launched.last_end_ns
    begin, end = (int(borders_ns.min()), int(borders_ns.max())) if len(borders_ns) else (first, last)
    starting = calls.calls.take(distinct(call[known & (rows.start_ns == first)]))
    every = calls.calls.take(distinct(call[known]))
    launch, silence = (0, 0, -1), (0, 0, -1)
    if len(starting):
        one = int(starting.start_ns.argmin())
        launch = (int(starting.start_ns[one]), int(starting.end_ns[one]), int(starting.place[one]))
    if len(every):
        # Nothing ends it; the thread that launched last may say why.
        silence = (NEVER, NEVER, int(every.place[every.start_ns.argmax()]))
    return _one_gap(begin, first, *launch), _one_gap(last, end, *silence)


def _one_gap(begin_ns: int, end_ns: int, *launch: int) -> Gaps:
    """This gap, or none where it is empty."""
    return Gaps(*(np.array([value][: end_ns > begin_ns], np.int64) for value in (begin_ns, end_ns, *launch)))


def join_gaps(gaps: Sequence[Gaps]) -> Gaps:
    """All of them, one collection after the other."""
    return Gaps(*(np.concatenate([getattr(one, name) for one in gaps]) for name in Gaps.__slots__))


def delay_limit(delays_ns: Int64s) -> int:
    """What still counts as the delay of a launch: the 90th percentile (nearest rank), from 5 to 20 µs."""
    if len(delays_ns) == 0:
        return _SHORTEST_DELAY_NS
    ordered = np.sort(delays_ns)
    return int(np.clip(ordered[-(-len(ordered) * 9 // 10) - 1], _SHORTEST_DELAY_NS, _LONGEST_DELAY_NS))
