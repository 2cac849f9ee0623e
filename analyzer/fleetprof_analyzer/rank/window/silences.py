"""Stretches of a trace in which nothing at all was recorded: no row of the host, and none of a device.

Guarantees: pure; linear in the rows; a silence is found where it is twice as long as asked for, and none that is
shorter than half of it.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.trace.intervals import Union
from fleetprof_analyzer.trace.trace import Rows

_MOST_PIECES: Final = 1 << 16
_ROWS_AT_ONCE: Final = 1 << 20
_NONE: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def find_silences(rows: Rows, least_ns: int) -> Union:
    """The silences of at least `least_ns` between the first start and the last end of rows."""
    if len(rows) == 0:
        return _NONE
    begin, end = int(rows.start_ns.min()), int(rows.end_ns.max())
    if end - begin < least_ns:
        return _NONE
    # Rows are many: they are taken by pieces of time, and only the borders of empty pieces are looked up.
    piece = max((end - begin) // _MOST_PIECES, least_ns // 4, 1)
    count = (end - begin) // piece + 2
    running, latest, earliest = np.zeros(count, np.int64), np.full(count, begin), np.full(count, end)
    for at in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows.part(at, at + _ROWS_AT_ONCE)
        first, last = (some.start_ns - begin) // piece, (some.end_ns - begin) // piece
        running += np.bincount(first, minlength=count) - np.bincount(last + 1, minlength=count)
        np.minimum.at(earliest, first, some.start_ns)
        np.maximum.at(latest, last, some.end_ns)
    empty = np.flatnonzero(np.cumsum(running)[:-1] == 0)
    if len(empty) == 0:
        return _NONE
    apart = np.diff(empty) > 1
    starts = np.maximum.accumulate(latest)[empty[np.concatenate(([True], apart))] - 1]
    ends = np.minimum.accumulate(earliest[::-1])[::-1][empty[np.concatenate((apart, [True]))] + 1]
    found = ends - starts >= least_ns
    return starts[found], ends[found]
