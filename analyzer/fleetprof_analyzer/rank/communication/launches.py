"""Puts the device work of a rank into the order of its launches.

The order of launches is the program; the order of starts is what became of it. Guarantees: every row has a time;
where a launch is missing, the row takes that of the row before it on its stream.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_MOST_MISSING: Final = 0.5


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Of rows of device work, when the host `called` to launch each, and when it had `launched` it, ns.

    What the call itself takes is the host's time, unless it waits for the work, as copies may. Both are the rows' own
    starts where the trace has no launches. `known`: the row's own launch was recorded.
    """

    called: Int64s
    launched: Int64s
    known: Bools


def launch_times(trace: Trace, rows: Rows) -> LaunchTimes:
    """The launches of `rows` (device work)."""
    calls = trace.rows.select((trace.rows.category == Category.RUNTIME) & (trace.rows.correlation >= 0))
    if len(calls) == 0 or len(rows) == 0:
        return _unknown(rows)
    order = order_by(calls.correlation, calls.start_ns)
    correlation, start, end = calls.correlation[order], calls.start_ns[order], calls.end_ns[order]
    # The first of several calls with one correlation: the runtime's, with the driver's inside.
    at = np.minimum(np.searchsorted(correlation, rows.correlation), len(correlation) - 1)
    found = (correlation[at] == rows.correlation) & (start[at] <= rows.start_ns)
    if found.mean() < 1 - _MOST_MISSING:
        return _unknown(rows)
    launch = np.where(found, start[at], np.int64(0))
    if not found.all():
        by_stream = np.lexsort((rows.start_ns, rows.place))
        known = np.where(found[by_stream], np.arange(len(by_stream)), -1)
        place = rows.place[by_stream]
        first = np.concatenate(([True], place[1:] != place[:-1]))
        last_known = _within_stream(known, first)
        filled = np.where(last_known >= 0, launch[by_stream][np.maximum(last_known, 0)], rows.start_ns[by_stream])
        launch[by_stream] = filled
    returned = found & (rows.category == Category.KERNEL)
    return LaunchTimes(launch, np.where(returned, np.minimum(end[at], rows.start_ns), launch), found)


def _unknown(rows: Rows) -> LaunchTimes:
    return LaunchTimes(rows.start_ns, rows.start_ns, np.zeros(len(rows), np.bool_))


def _within_stream(known: Int64s, first: Bools) -> Int64s:
    """The last known position at or before each one in the same stream; -1 where there is none."""
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    last = np.maximum.accumulate(known)
    return np.where(last >= begin, last, -1)
