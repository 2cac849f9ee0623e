"""Rows that lie far outside of what was recorded: at time 0, or long before or behind everything else.

They belong to no iteration, and a window that reached to them would be idle for nearly all of its time. Guarantees:
pure; what is left out is counted and said.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.iterations import find_marks
from fleetprof_analyzer.rank.window.silences import find_silences
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Bools, Rows, Trace

# Of the time of all rows: a part of the recording holds more.
_MOST_PERMILLE: Final = 50
_LEAST_SILENCE_NS: Final = 50_000_000
_LEAST_SILENCE_ON_HOST_NS: Final = 1_000_000_000  # a thread without a core is silent for tenths of a second
_LONGER_THAN_ALL: Final = 10
_MOST_STRETCHES: Final = 32


def leave_out_strays(trace: Trace, problems: Problems) -> Trace:
    """The trace without rows that a long silence of host and devices parts from all iterations.

    The silence is longer than an iteration, and the rows are few or it is ten times as long as all else. Where nothing
    marks iterations, it is as long as all else, and the rows are few.
    """
    rows = trace.rows
    kept = np.ones(len(rows), np.bool_)
    for _ in range(_MOST_STRETCHES):
        here = rows if kept.all() else rows.select(kept)
        stray = _find_stretch(trace, here)
        if not stray.any():
            break
        kept[np.flatnonzero(kept)[stray]] = False
    if kept.all():
        return trace
    count = int((~kept).sum())
    example = int(np.flatnonzero(~kept)[0])
    away_ns = max(
        int(rows.start_ns[kept].min()) - int(rows.end_ns[example]),
        int(rows.start_ns[example]) - int(rows.end_ns[kept].max()),
    )
    name = trace.names[rows.name[example]]
    problems.add(ProblemKind.OUTSIDE_RECORDING, f"{name!r}, {away_ns / 1e9:,.3f} s away", count)
    return replace(trace, rows=rows.select(kept))


def _find_stretch(trace: Trace, rows: Rows) -> Bools:
    """A mask of the `rows` in a first or last stretch that is none of the recording, shape (n,)."""
    stray: Bools
    marks = find_marks(replace(trace, rows=rows))
    nothing = np.zeros(len(rows), np.bool_)
    least = _LEAST_SILENCE_NS if rows.on_device.any() else _LEAST_SILENCE_ON_HOST_NS
    if len(marks):
        begin, end = int(marks.start_ns.min()), int(marks.end_ns.max())
        apart = np.diff(np.sort(marks.end_ns)) if len(marks) > 1 else np.array([end - begin])
        least = max(least, int(np.median(apart)))
    else:
        begin, end = 0, 0
    whole = int(rows.duration_ns.sum())
    for silent_from, silent_to in zip(*find_silences(rows, least), strict=True):
        before = rows.start_ns < silent_to
        for stray in (before, ~before):
            stretch, rest = rows.select(stray), rows.select(~stray)
            first, last = int(stretch.start_ns.min()), int(stretch.end_ns.max())
            length = int(rest.end_ns.max() - rest.start_ns.min())
            is_small = 1000 * int(stretch.duration_ns.sum()) <= _MOST_PERMILLE * whole
            if len(marks):
                is_far = silent_to - silent_from >= _LONGER_THAN_ALL * length
                is_stray = (last <= begin or first >= end) and (is_far or is_small)
            else:
                is_stray = is_small and silent_to - silent_from >= length
            if is_stray:
                return stray
    return nothing
