"""Finds rows whose duration cannot be, so that one broken record does not drown a measure.

CUPTI and roctracer now and then report a kernel of seconds or of 10^15 µs among kernels of microseconds. Guarantees: a
row goes only when one of the rules of docs/measures.md#impossible-durations proves it wrong; each is counted.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Bools, Rows

_DAY_NS: Final = 86_400 * 10**9
_LONG_NS: Final = 10**9
_FARTHEST_NS: Final = 1 << 62


def drop_impossible(rows: Rows, window_end_ns: int | None, problems: Problems) -> Rows:
    """The rows without those that cannot be; `window_end_ns` is the recorder's own word for its end."""
    if len(rows) == 0:
        return rows
    far = np.abs(rows.start_ns) > _FARTHEST_NS
    problems.add(ProblemKind.BAD_TIMES, count=int(far.sum()))
    negative = ~far & (rows.duration_ns < 0)
    problems.add(ProblemKind.NEGATIVE_DURATION, count=int(negative.sum()))
    if (far | negative).any():
        rows = rows.select(~(far | negative))
    absurd = rows.duration_ns > _DAY_NS
    long = ~absurd & rows.on_device & (rows.duration_ns > _LONG_NS)
    if long.any():
        absurd |= long & (_ends_after_all(rows, window_end_ns) | _runs_over_its_stream(rows, long))
    problems.add(ProblemKind.ABSURD_DURATION, count=int(absurd.sum()))
    return rows.select(~absurd) if absurd.any() else rows


def _ends_after_all(rows: Rows, window_end_ns: int | None) -> Bools:
    """Rows that end more than a second after the window, or after every row began and every short one ended."""
    last = int(rows.start_ns.max()) if window_end_ns is None else window_end_ns
    short = rows.duration_ns <= _LONG_NS
    if short.any():
        last = max(last, int(rows.end_ns[short].max()))
    host = ~rows.on_device & (rows.duration_ns <= _DAY_NS)
    if host.any():
        last = max(last, int(rows.end_ns[host].max()))
    return np.asarray(rows.end_ns > last + _LONG_NS)


def _runs_over_its_stream(rows: Rows, long: Bools) -> Bools:
    """Rows of `long` during which another row of the same stream begins: a stream runs one thing after the other."""
    found = np.zeros(len(rows), np.bool_)
    for index in np.flatnonzero(long)[:1000]:
        start, end = rows.start_ns[index], rows.start_ns[index] + rows.duration_ns[index]
        begun = rows.on_device & (rows.place == rows.place[index]) & (rows.start_ns > start) & (rows.start_ns < end)
        found[index] = bool(begun.any())
    return found
