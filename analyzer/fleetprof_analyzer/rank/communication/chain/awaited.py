"""Tells for which rows of its device a host waits that waits for a part of what it launched: until an earlier layer is
through, as where FSDP holds gathers back (`cudaEventSynchronize`).

No call names its event. What shows it is that the call returns right behind the end of one row, the same number of
rows back in all iterations, and never before it. Guarantees: pure; calls that wait for all of their chain, and those
that return at any other time, are not said to wait for a part.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Int64s

_WAKE_NS: Final = 15_000  # from the end of the row until the call returns
_AGREEING_SHARE: Final = 0.9
_FEWEST: Final = 2  # calls that waited


def find_awaited(
    start_ns: Int64s, end_ns: Int64s, row: Int64s, row_end_ns: Int64s, place: Int64s, tolerance_ns: int
) -> Int64s:
    """For each call, shape (c,), how many rows must have ended when it returns, where those are fewer than the `row`
    rows launched before it; -1: not known.

    `row_end_ns`, shape (m + 1,), is when all rows before row k had ended; `place` is the same number for the same call
    of the program, -1 where iterations differ.
    """
    awaited = np.full(len(row), -1, np.int64)
    ended = np.maximum(np.searchsorted(row_end_ns, end_ns + tolerance_ns, side="right") - 1, 0)
    left = np.maximum(row - ended, 0)
    order = np.argsort(place, kind="stable")
    cuts = np.flatnonzero(np.diff(place[order], prepend=-2))
    for here in np.split(order, cuts[1:]):
        if len(here) == 0 or place[here[0]] < 0:
            continue
        back = int(left[here].max())
        known = here[row[here] > back]
        if back and _return_behind(start_ns[known], end_ns[known], row_end_ns[row[known] - back], tolerance_ns):
            awaited[known] = row[known] - back
    return awaited


def _return_behind(start_ns: Int64s, end_ns: Int64s, ended_ns: Int64s, tolerance_ns: int) -> bool:
    """Tells whether calls that take long return right behind these moments."""
    long: Bools = end_ns - start_ns > _WAKE_NS
    behind = long & (start_ns < ended_ns) & (end_ns + tolerance_ns >= ended_ns) & (end_ns - ended_ns <= _WAKE_NS)
    return int(behind.sum()) >= max(_FEWEST, _AGREEING_SHARE * int(long.sum()))
