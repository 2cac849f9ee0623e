"""The host's own work of a GPU rank along the marks of its chain (chain.py), and how it holds the device up.

A row begins when the chain has come to it and the host has launched it. A host that is ahead of its device stays so
while the device waits for others; one whose device never waits has no lead, and its gaps show. So the host's own time
is a chain beside the device's: it goes on by itself, and waits only in calls that wait for the device. Guarantees: no
clock but the rank's own; with the times of the trace the two chains give back the trace.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.intervals import Union, covered_length
from fleetprof_analyzer.trace.trace import Bools, Int64s

NEVER: Final = -(1 << 50)  # ns: no row of the mark's was launched
_DEEP_QUEUE: Final = 512  # launches that are not begun: the driver lets no more than 1,024 wait, and blocks the host
_LAUNCH_NS: Final = 20_000


@dataclass(frozen=True, slots=True)
class HostWaits:
    """Calls in which the host waits for its device: when each began and returned, and the rows launched before.

    `awaited` counts the rows whose end it waits for where those are fewer (awaited.py), -1: not known to be fewer.
    """

    start_ns: Int64s
    end_ns: Int64s
    row: Int64s
    awaited: Int64s


@dataclass(frozen=True, slots=True)
class HostChain:
    """Per mark. `work_ns` is the own time without what the host held up.

    `host_ns` is the host's own time since the mark before, `lead_ns` how much later than the chain it reached this one
    (negative: it was ahead). The rows before the mark end no sooner than `tail_work_ns` after the host launched the one
    that it held up most, `tail_host_ns` before it reached the mark; `tail_work_ns` is NEVER where there are no rows.
    """

    work_ns: Int64s
    host_ns: Int64s
    lead_ns: Int64s
    tail_host_ns: Int64s
    tail_work_ns: Int64s


def no_host(own_ns: Int64s) -> HostChain:
    """An empty chain of the host, for ranks whose host is the chain itself, or its launches were not recorded."""
    none = np.zeros(len(own_ns), np.int64)
    return HostChain(own_ns, none, none, none, np.full(len(own_ns), NEVER, np.int64))


def follow_host(
    mark_row: Int64s, time_ns: Int64s, own_ns: Int64s, reached_ns: Int64s, resumed_ns: Int64s, row_start_ns: Int64s,
    row_end_ns: Int64s, row_launch_ns: Int64s, idle: Union,
) -> HostChain:  # fmt: skip
    """The host beside the chain's marks; in `idle` it waited for something else.

    `mark_row` counts the rows before each mark, `time_ns` is when the chain was there; `reached_ns` when the host had
    come to it by itself, and `resumed_ns` when it went on: later where it waited. Both never decrease.
    """
    rows, marks = len(row_launch_ns), len(mark_row)
    if marks == 0:
        return no_host(own_ns)
    # Rows between two marks belong to the second.
    after = np.searchsorted(mark_row, np.arange(rows), side="right") - 1
    from_mark = np.where(after >= 0, time_ns[np.maximum(after, 0)], np.iinfo(np.int64).min)
    begun = np.maximum(np.maximum(row_end_ns[:-1], from_mark), row_launch_ns)
    work = np.maximum(row_end_ns[1:] - begun, 0)
    total = np.concatenate(([0], np.cumsum(work)))
    first = np.concatenate((mark_row[:1], mark_row[:-1]))
    late = row_launch_ns - total[:-1]
    work_ns = total[mark_row] - total[first]
    tail_host, tail_work = np.zeros(marks, np.int64), np.full(marks, NEVER, np.int64)
    filled = np.flatnonzero(mark_row > first)
    if len(filled):
        latest = _latest(late, first[filled], mark_row[filled])
        tail_work[filled] = total[mark_row[filled]] - total[latest]
        tail_host[filled] = reached_ns[filled] - row_launch_ns[latest]
    before = np.concatenate((resumed_ns[:1], resumed_ns[:-1]))
    waited = _blocked(row_start_ns, row_launch_ns, before, reached_ns)
    waited += covered_length(reached_ns, idle) - covered_length(before, idle)
    host = np.maximum(reached_ns - before - waited, 0)
    return HostChain(work_ns, host, reached_ns - time_ns, tail_host, tail_work)


def _latest(late: Int64s, first: Int64s, stop: Int64s) -> Int64s:
    """The row of [first, stop) that is latest, for disjoint runs in order."""
    run = np.repeat(np.arange(len(first)), stop - first)
    rows = np.concatenate([np.arange(a, b) for a, b in zip(first, stop, strict=True)])
    order = np.lexsort((late[rows], run))
    last = np.cumsum(stop - first) - 1
    return np.asarray(rows[order[last]])


def _blocked(row_start_ns: Int64s, row_launch_ns: Int64s, begin_ns: Int64s, end_ns: Int64s) -> Int64s:
    """The time that the host was held in launch calls between two moments, because too many launches were waiting."""
    if len(row_launch_ns) <= _DEEP_QUEUE:
        return np.zeros(len(begin_ns), np.int64)
    # Operations are launched too: what lies between two rows may lie on either side of one.
    moments = np.unique(np.concatenate((row_launch_ns, end_ns)))
    waiting = np.searchsorted(row_launch_ns, moments) - np.searchsorted(np.sort(row_start_ns), moments)
    gap = np.diff(moments, append=moments[-1:])
    held = np.where(waiting >= _DEEP_QUEUE, gap - _LAUNCH_NS, 0) > 0
    times = (moments + _LAUNCH_NS)[held], (moments + gap)[held]
    return covered_length(end_ns, times) - covered_length(begin_ns, times)


def kept_waits(waits: HostWaits, row_end_ns: Int64s, tolerance_ns: int) -> Bools:
    """The calls that waited for all that the chain had been given: it was done when they returned."""
    work_end_ns = row_end_ns[waits.row]
    long = waits.end_ns - waits.start_ns > tolerance_ns
    return (work_end_ns <= waits.end_ns + tolerance_ns) & long & (waits.awaited < 0)
