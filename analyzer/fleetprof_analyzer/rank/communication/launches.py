"""Puts the device work of a rank into the order of its launches.

The order of launches is the program; the order of starts is what became of it. Guarantees: every row has a time;
where a launch is missing, the row takes that of the row before it on its stream.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_MOST_MISSING: Final = 0.5


def launch_times(trace: Trace, rows: Rows) -> Int64s:
    """When the host launched each of `rows` (device work), ns; their own starts where the trace has no launches."""
    calls = trace.rows.select((trace.rows.category == Category.RUNTIME) & (trace.rows.correlation >= 0))
    if len(calls) == 0 or len(rows) == 0:
        return rows.start_ns.copy()
    order = order_by(calls.correlation, calls.start_ns)
    correlation, start = calls.correlation[order], calls.start_ns[order]
    # The first of several calls with one correlation: the runtime's, with the driver's inside.
    at = np.minimum(np.searchsorted(correlation, rows.correlation), len(correlation) - 1)
    found = (correlation[at] == rows.correlation) & (start[at] <= rows.start_ns)
    if found.mean() < 1 - _MOST_MISSING:
        return rows.start_ns.copy()
    launch = np.where(found, start[at], np.int64(0))
    if not found.all():
        by_stream = np.lexsort((rows.start_ns, rows.place))
        known = np.where(found[by_stream], np.arange(len(by_stream)), -1)
        place = rows.place[by_stream]
        first = np.concatenate(([True], place[1:] != place[:-1]))
        last_known = _within_stream(known, first)
        filled = np.where(last_known >= 0, launch[by_stream][np.maximum(last_known, 0)], rows.start_ns[by_stream])
        launch[by_stream] = filled
    return np.asarray(launch)


def _within_stream(known: Int64s, first: Bools) -> Int64s:
    """The last known position at or before each one in the same stream; -1 where there is none."""
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    last = np.maximum.accumulate(known)
    return np.where(last >= begin, last, -1)
