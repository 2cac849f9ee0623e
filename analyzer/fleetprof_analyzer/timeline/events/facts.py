"""Facts that must be known of a rank's trace before its events can be copied, and its marks.

Guarantees: pure; small, whatever the trace holds.
"""

from dataclasses import dataclass

import numpy as np
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls, find_calls
from fleetprof_analyzer.timeline.events.marks import Mark, Span, mark_rank
from fleetprof_analyzer.timeline.events.module_marks import mark_modules
from fleetprof_analyzer.timeline.events.waits import CollectiveWaits
from fleetprof_analyzer.trace.trace import Trace

_LONG_NS = 10**9


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """The facts of one trace; times are those of the rank's own clock."""

    base_ns: int  # the file's times are that much less
    first_ns: int
    last_ns: int
    end_ns: int  # of the work that was launched in the window, at least the window's end
    long_work: frozenset[Span]  # (start, duration) in the file's times, of device rows of more than a second
    world_size: int | None
    marks: list[Mark]


def find_facts(trace: Trace, entry: Rank, span: Span, waits: CollectiveWaits) -> TraceFacts:
    """The facts of one rank, with its marks in the window."""
    rows = trace.rows
    calls = find_calls(trace)
    end = _launched_end(trace, calls, span)
    long = rows.select(rows.on_device & (rows.duration_ns > _LONG_NS))
    reached = span[0], end
    of_rank = mark_rank(trace, entry, calls, reached)
    marks = [*of_rank, *mark_modules(trace, reached), *waits.mark(trace.source, trace.places, reached)]
    return TraceFacts(
        base_ns=trace.base_ns,
        first_ns=int(rows.start_ns.min()) if len(rows) else entry.start_ns,
        last_ns=int(rows.end_ns.max()) if len(rows) else entry.start_ns,
        end_ns=end,
        long_work=frozenset(zip((long.start_ns - trace.base_ns).tolist(), long.duration_ns.tolist(), strict=True)),
        world_size=trace.metadata.world_size,
        marks=marks,
    )


def _launched_end(trace: Trace, calls: LaunchCalls, span: Span) -> int:
    """The end of the last work that the host launched in the window."""
    work = trace.rows.select(trace.rows.on_device)
    call = calls.of(work)
    if not len(work) or not len(calls.calls):
        return span[1]
    launched = calls.calls.start_ns[call]
    mine = (call >= 0) & (launched >= span[0]) & (launched < span[1])
    return max(span[1], int(work.end_ns[mine].max(initial=np.iinfo(np.int64).min)))
