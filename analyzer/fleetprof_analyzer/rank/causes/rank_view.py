"""One rank as the rules of known causes look at it: its iterations, its thread, and when time is there to be won.

Guarantees: pure; on a rank with devices only time in which none of them works counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.stages.stages import FoundStages
from fleetprof_analyzer.trace.intervals import Union, covered_length, join, length, union, without
from fleetprof_analyzer.trace.trace import Int64s, Trace

NOTHING: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class RankView:
    """A rank's iterations; `free` is when a saving on the host saves time: in them, and on no device."""

    trace: Trace
    samples: RankSamples | None  # on the trace's clock; None without, or where the clocks are not one
    iterations: Sequence[Iteration]
    stages: FoundStages
    whole: Union
    free: Union
    on_gpu: bool

    def cost_ns(self, spans: Union) -> int:
        """The part of the spans that could be won."""
        return overlap(spans, self.free)

    def each_ns(self, spans: Union) -> Int64s:
        """The time of the spans within each iteration, shape (iterations,)."""
        start = np.array([one.start_ns for one in self.iterations], np.int64)
        length_ns = np.array([one.duration_ns for one in self.iterations], np.int64)
        return covered_length(start + length_ns, spans) - covered_length(start, spans)

    def each_cost_ns(self, spans: Union) -> Int64s:
        """The part of the spans within each iteration that could be won, shape (iterations,)."""
        return self.each_ns(without(spans, without(spans, self.free)))


def view_rank(
    trace: Trace,
    samples: RankSamples | None,
    iterations: Sequence[Iteration],
    stages: FoundStages,
    works: Sequence[DeviceWork],
) -> RankView:
    """`works`: the rank's devices; none of a CPU-only rank."""
    start = np.array([one.start_ns for one in iterations], np.int64)
    whole = union(start, start + np.array([one.duration_ns for one in iterations], np.int64))
    busy = NOTHING
    for work in works:
        busy = join(busy, work.not_idle())
    return RankView(
        trace=trace,
        samples=samples if trace.time_origin == "unix" else None,
        iterations=iterations,
        stages=stages,
        whole=whole,
        free=without(whole, busy),
        on_gpu=bool(works),
    )


def overlap(first: Union, second: Union) -> int:
    """The time that two unions have in common, ns."""
    return length(first) - length(without(first, second))
