"""The earliest begins of one rank's rows: constants of its recording, what they wait for, and what stays unexplained.

Guarantees: pure. A row begins when it was launched, the row before it on its stream has ended, and what it stands
behind on other streams has; a start that is more than 25 µs after all of these is unexplained and kept as it was.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Int64s
from fleetprof_analyzer.whatif.replay.course import RankCourse, StreamRows
from fleetprof_analyzer.whatif.replay.dependencies import AT_ONCE_NS, Dependencies, find_dependencies

_USUAL_LATENCY_NS: Final = 5_000
_MOST_LATENCY_NS: Final = 100_000
_LEAST: Final = 0.02  # quantile
_MANY: Final = 4


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The order of n rows: the one before on the stream (-1), how long after its end each begins at least, the rest.

    `latency_ns` is from a launch's call to its row; `lag_ns`: of the start, unexplained; `rests`: nothing that was
    recorded says when the row could begin.
    """

    iteration: Int64s
    previous: Int64s
    gap_ns: Int64s
    latency_ns: int
    dependencies: Dependencies
    lag_ns: Int64s
    rests: Bools

    @property
    def unexplained_ns(self) -> int:
        """Starts that nothing explains, in all; without each stream's first, which may wait for what ran before."""
        return int(self.lag_ns[self.previous >= 0].sum())


def time_streams(course: RankCourse, *, proven: bool = True) -> StreamTimes:
    """The constants and dependencies of one rank."""
    rows = course.rows
    iteration = iterations_of(course)
    previous = _previous(rows)
    before = rows.end_ns[np.maximum(previous, 0)]
    has = previous >= 0
    latency = _latency(rows, course.kind == "gpu")
    since = rows.start_ns - before
    queued = has & (since >= 0) & (since <= AT_ONCE_NS) & (rows.called_ns + latency <= before)
    gap = np.where(since < 0, since, _median(since[queued], 0))
    launched = np.where(rows.known, rows.called_ns + latency, np.iinfo(np.int64).min)
    ready = np.where(has, np.maximum(launched, before + gap), launched)
    found = find_dependencies(rows, iteration, ready, proven=proven)
    np.maximum.at(ready, found.later, rows.end_ns[found.earlier] + found.gap_ns)
    rests = ~rows.known & ~has
    late = np.where(rests, 0, rows.start_ns - ready)
    lag = np.where(late > AT_ONCE_NS, late, 0)
    return StreamTimes(iteration, previous, gap, latency, found, lag, rests)


def _latency(rows: StreamRows, on_device: bool) -> int:
    """From a launch's call to its row's begin, where nothing that was launched before ran any more.

    At the window's begin what was launched before it still runs, unrecorded: such rows are far later than others.
    """
    if not rows.known.any():
        return _USUAL_LATENCY_NS
    since = rows.start_ns - rows.called_ns
    least = int(np.quantile(since[rows.known], _LEAST))
    if on_device and least > _MOST_LATENCY_NS:
        return _USUAL_LATENCY_NS
    ended = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(rows.end_ns)[:-1]))
    idle = rows.known & (ended <= rows.called_ns) & (since <= _MANY * least + _USUAL_LATENCY_NS)
    return _median(since[idle], least)


def iterations_of(course: RankCourse) -> Int64s:
    """The iteration in which each row was launched, -1 outside, shape (n,)."""
    starts = np.array([begin for begin, _ in course.bounds], np.int64)
    ends = np.array([end for _, end in course.bounds], np.int64)
    if len(starts) == 0:
        return np.full(len(course.rows), -1, np.int64)
    at = np.searchsorted(starts, course.rows.called_ns, side="right") - 1
    inside = (at >= 0) & (course.rows.called_ns < ends[np.maximum(at, 0)])
    return np.where(inside, at, -1)


def _previous(rows: StreamRows) -> Int64s:
    previous = np.full(len(rows), -1, np.int64)
    for place in np.unique(rows.place):
        here = np.flatnonzero(rows.place == place)
        previous[here[1:]] = here[:-1]
    return previous


def _median(values: Int64s, otherwise: int) -> int:
    return int(np.median(values)) if len(values) else otherwise
