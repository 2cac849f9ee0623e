"""The gaps in which a device was idle, each with the call that launched what ends it.

Guarantees: pure; gaps are disjoint and sorted, and with the device's work and what was not recorded of it they cover
its span.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls, Positions
from fleetprof_analyzer.trace.intervals import Union, without
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
    """A device's work, when any of it ran or was not recorded, and for each row the position of its call, -1: none."""

    work: DeviceWork
    busy: Union
    not_idle: Union
    calls: LaunchCalls
    call: Positions

    @classmethod
    def of(cls, work: DeviceWork, calls: LaunchCalls) -> "Launched":
        """Makes the columns by which gaps of this work are found and explained."""
        return cls(work, work.busy(), work.not_idle(), calls, calls.of(work.rows))

    @property
    def last_end_ns(self) -> int:
        """The ends of work of some length."""
        _, ends = self.busy
        return int(ends[-1]) if len(ends) else int(self.work.rows.start_ns.min())


def find_gaps(launched: Launched) -> Gaps:
    """The gaps that end where work begins or its record is lost, from the first start to the last end."""
    work, calls, lost = launched.work, launched.calls, launched.work.unrecorded
    starts, ends = launched.not_idle
    # Rows of no length are no work, but the first of them begins the span.
    first_ns, last_ns = int(work.rows.start_ns.min()), launched.last_end_ns
    starts, ends = (times[(ends > first_ns) & (starts < last_ns)] for times in (starts, ends))
    begin = np.concatenate(([first_ns], ends))[: len(starts)]
    begin, end = begin[begin < starts], starts[begin < starts]
    lasting = work.rows.duration_ns > 0
    start = np.concatenate((work.rows.start_ns[lasting], lost.start_ns))
    call = np.concatenate((launched.call[lasting], lost.call))
    known = call >= 0
    call_start = np.full(len(call), NEVER)
    call_start[known] = calls.calls.start_ns[call[known]]
    # Of several rows that end a gap together, the one that was launched first.
    correlation = np.concatenate((work.rows.correlation[lasting], lost.call))
    order = order_by(start, call_start, correlation)
    first = order[np.searchsorted(start[order], end)]
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
    return _cut(_one_gap(begin, first, *launch), launched), _cut(_one_gap(last, end, *silence), launched)


def _cut(gap: Gaps, launched: Launched) -> Gaps:
    """A gap without what was not recorded: each piece before that ends with the launch that was lost."""
    lost, calls = launched.work.unrecorded, launched.calls.calls
    if len(gap.thread) == 0 or len(lost) == 0:
        return gap
    pieces = []
    for begin, end in zip(*without((gap.begin_ns, gap.end_ns), lost.times), strict=True):
        at = np.flatnonzero(lost.start_ns == end)
        call = int(lost.call[at[0]]) if len(at) else -1
        if len(at) == 0:
            launch = (int(gap.call_start_ns[0]), int(gap.call_end_ns[0]), int(gap.thread[0]))
        elif call >= 0:
            launch = (int(calls.start_ns[call]), int(calls.end_ns[call]), int(calls.place[call]))
        else:
            launch = (0, 0, -1)
        pieces.append(_one_gap(int(begin), int(end), *launch))
    return join_gaps(pieces) if pieces else gap.select(np.zeros(1, np.bool_))


def _one_gap(begin_ns: int, end_ns: int, *launch: int) -> Gaps:
    """This gap, or none where it is empty."""
    return Gaps(*(np.array([value][: end_ns > begin_ns], np.int64) for value in (begin_ns, end_ns, *launch)))


def join_gaps(gaps: Sequence[Gaps]) -> Gaps:
    """All of them, one collection after the other."""
    return Gaps(*(np.concatenate([getattr(one, name) for one in gaps]) for name in Gaps.__slots__))


def delay_limit(delays_ns: Int64s) -> int:
    """The longest time that counts as the delay of a launch: the 90th percentile (nearest rank), from 5 to 20 µs."""
    if len(delays_ns) == 0:
        return _SHORTEST_DELAY_NS
    ordered = np.sort(delays_ns)
    return int(np.clip(ordered[-(-len(ordered) * 9 // 10) - 1], _SHORTEST_DELAY_NS, _LONGEST_DELAY_NS))
