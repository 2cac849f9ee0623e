"""Parts the iteration whose modules the agent has marked from all others: no other measure may see it or its marks.

Guarantees: pure; a trace without marks is the same object; work of the device goes with the call that launched it, so
what an earlier iteration launched stays with it, whenever it ran.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Category, Inputs, Rows, Trace

MARK: Final = re.compile(r"^fleetprof\.(?:module:\d|marks (?:begin|end)$)")
_END: Final = re.compile(r"^fleetprof\.marks end$")
_BOUND: Final = re.compile(r"^fleetprof\.marks (?:begin|end)$")


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """Rows of the marked iteration, modules' marks among them; `end_ns`: marking ended, None: with the recording."""

    rows: Rows
    names: list[str]
    inputs: list[Inputs]
    begin_ns: int
    end_ns: int | None


def part_marked(trace: Trace) -> tuple[Trace, MarkedRows | None]:
    """The trace as if its recording had ended before the marks, and the iteration that has them."""
    rows = trace.rows
    marks = (rows.category == Category.OPERATOR) & where_name(rows, trace.names, matcher(MARK))
    if not marks.any():
        return trace, None
    begin = int(rows.start_ns[marks].min())
    before = _launched_before(rows, begin)
    ends = marks & where_name(rows, trace.names, matcher(_END))
    end = int(rows.start_ns[ends].max()) if ends.any() else None
    is_inside = ~before & ~(marks & where_name(rows, trace.names, matcher(_BOUND)))
    marked = rows.select(is_inside if end is None else is_inside & _launched_before(rows, end + 1))
    window_end = begin if trace.window_end_ns is None else min(begin, trace.window_end_ns)
    frames = trace.frames.select(trace.frames.start_ns < begin) if len(trace.frames) else trace.frames
    kept = _cut(rows.select(before), begin, int(rows.place[marks][0]))
    return (
        replace(trace, rows=kept, frames=frames, window_end_ns=window_end),
        MarkedRows(marked, trace.names, trace.inputs, begin, end),
    )


def _cut(rows: Rows, at_ns: int, place: int) -> Rows:
    """The rows of one thread end at `at_ns` at the latest: the step that goes on then has our own work behind it."""
    goes_on = (rows.place == place) & ~rows.on_device & (rows.end_ns > at_ns)
    return replace(rows, duration_ns=np.where(goes_on, at_ns - rows.start_ns, rows.duration_ns))


def _launched_before(rows: Rows, at_ns: int) -> Bools:
    """Marks the rows that began or were launched before, shape (n,)."""
    before = rows.start_ns < at_ns
    calls = (rows.category == Category.RUNTIME) & before & (rows.correlation >= 0)
    return np.asarray(before | (rows.on_device & np.isin(rows.correlation, rows.correlation[calls])))
