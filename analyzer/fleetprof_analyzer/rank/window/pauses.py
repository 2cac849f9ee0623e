"""Pauses of the recorder: it stopped and began again, as a schedule with several cycles has it.

Guarantees: pure; where the recorder's own words say that it went on, there is none.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.iterations import find_marks, find_profiler_ranges
from fleetprof_analyzer.rank.window.clocks import Misfit
from fleetprof_analyzer.rank.window.silences import find_silences
from fleetprof_analyzer.trace.intervals import Union
from fleetprof_analyzer.trace.trace import Trace

_LEAST_NS: Final = 1_000_000  # PyTorch takes a tenth of it from one of its ranges to the next
_LEAST_DIVISOR: Final = 20  # of its ranges
_LEAST_OUTSIDE_NS: Final = 50_000_000
_LEAST_WITHOUT_RANGES_NS: Final = 500_000_000
_TIMES_LONGER: Final = 10  # than an iteration
_NONE: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def find_pauses(trace: Trace, samples: RankSamples | None, misfit: Misfit | None = None) -> Union:
    """The pauses of the recorder; where the clocks do not fit, by the host alone.

    PyTorch's ranges of steps follow one another while it records, so what lies between two is a pause if it holds no
    row at all. Without them a silence of everything is one if it is ten times as long as an iteration, unless the
    agent captured (one recording without a pause) or the recorder's window reaches over it.
    """
    if misfit is not None:
        trace = replace(trace, rows=trace.rows.select(~trace.rows.on_device))
    ranges = find_profiler_ranges(trace)
    if len(ranges):
        least = max(_LEAST_NS, int(np.median(ranges.duration_ns)) // _LEAST_DIVISOR)
        starts, ends = find_silences(trace.rows, least)
        between = (starts >= ranges.start_ns.min()) & (ends <= ranges.end_ns.max())
        # Before the first and behind the last it may still go on for a moment.
        paused = between | (ends - starts >= max(_LEAST_OUTSIDE_NS, int(np.median(ranges.duration_ns))))
        return starts[paused], ends[paused]
    if samples is not None:
        return _NONE
    marks = find_marks(trace)
    least = _LEAST_WITHOUT_RANGES_NS
    if len(marks) > 1:
        least = max(least, _TIMES_LONGER * int(np.median(np.diff(np.sort(marks.end_ns)))))
    starts, ends = find_silences(trace.rows, least)
    if trace.window_start_ns is not None and trace.window_end_ns is not None:
        outside = (starts < trace.window_start_ns) | (ends > trace.window_end_ns)
        return starts[outside], ends[outside]
    return starts, ends
