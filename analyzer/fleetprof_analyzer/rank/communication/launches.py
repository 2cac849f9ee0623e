"""Puts the device work of a rank into the order of its launches.

The order of launches is the program; the order of starts is what became of it. Guarantees: every row has a time;
where a launch is missing, the row takes a time between the calls before and behind it by their numbers; without these
that of the row before it on its stream, or the window's begin.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.numbers import calls_around
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_MOST_MISSING: Final = 0.5


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """The times of rows of device work: when the host `called` to launch each, and when it had `launched` it, ns.

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
        host = ~trace.rows.on_device
        launch = _fill(rows, launch, found, int(trace.rows.start_ns[host].min()))
        lost = np.flatnonzero(~found)
        around = calls_around(trace.rows, rows.correlation[lost])
        if around is not None:
            ordered = around.before_ns > np.iinfo(np.int64).min
            latest = around.latest_ns(rows.correlation[lost], rows.start_ns[lost])
            launch[lost[ordered]] = latest[ordered]
    returned = found & (rows.category == Category.KERNEL)
    return LaunchTimes(launch, np.where(returned, np.minimum(end[at], rows.start_ns), launch), found)


def _unknown(rows: Rows) -> LaunchTimes:
    return LaunchTimes(rows.start_ns, rows.start_ns, np.zeros(len(rows), np.bool_))


def _fill(rows: Rows, launch_ns: Int64s, found: Bools, begin_ns: int) -> Int64s:
    """The launches, those not `found` with the row before; what precedes all of its stream's before the window."""
    order = np.lexsort((rows.start_ns, rows.place))
    place, known = rows.place[order], np.where(found[order], np.arange(len(order)), -1)
    last_known = _within_stream(known, np.concatenate(([True], place[1:] != place[:-1])))
    filled = launch_ns.copy()
    filled[order] = np.where(last_known >= 0, launch_ns[order][np.maximum(last_known, 0)], rows.start_ns[order])
    edge = np.sort(order[(last_known < 0) & np.isin(place, rows.place[found])])
    # About as they began: each was launched by itself.
    edge = edge[np.argsort(rows.start_ns[edge], kind="stable")]
    filled[edge] = np.minimum(rows.start_ns[edge], begin_ns) - np.arange(len(edge), 0, -1)
    return filled


def _within_stream(known: Int64s, first: Bools) -> Int64s:
    """The last known position at or before each one in the same stream; -1 where there is none."""
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    last = np.maximum.accumulate(known)
    return np.where(last >= begin, last, -1)
