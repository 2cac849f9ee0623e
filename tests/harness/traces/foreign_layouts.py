"""Layouts of jobs as other people write them: hybrid sharding, launch-bound hosts, pipelines without numbers, strays.

Each is drawn with the faults of the bench (planted_faults.py); what was planted is the right answer.
"""

from dataclasses import dataclass, replace

from fleetprof_analyzer.trace.trace import Trace

from harness.traces.planted.faults import FaultCase, draw
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape

KINDS = ("slow_gpu", "slow_host", "data_loader", "none")
_HYBRID = (
    JobShape(dp=8, sharded=True, replicas=2, layers=4), JobShape(dp=8, sharded=True, replicas=4, layers=4),
    JobShape(dp=16, sharded=True, replicas=4, layers=3), JobShape(dp=16, sharded=True, replicas=2, layers=3),
)  # fmt: skip
_TENSOR = (
    JobShape(dp=4, tp=2, layers=4, close_behind=True), JobShape(dp=2, tp=4, layers=4, close_behind=True),
    JobShape(dp=4, tp=4, layers=3, close_behind=True),
)  # fmt: skip
_PIPELINES = (
    JobShape(dp=4, pp=4, microbatches=12, layers=2, buckets=1, kernel_us=300),
    JobShape(dp=4, pp=2, microbatches=16, layers=2, buckets=1),
)  # fmt: skip


_BESIDE = (
    JobShape(dp=8, sharded=True, layers=4, beside=True),
    JobShape(dp=8, sharded=True, replicas=2, layers=4, beside=True),
    JobShape(dp=16, sharded=True, replicas=4, layers=3, beside=True),
)  # fmt: skip


@dataclass(frozen=True)
class TraceLayout:
    """Shapes of one sort, how long launching takes beside the kernels, and whether collectives say their number."""

    shapes: tuple[JobShape, ...]
    launch_shares: tuple[float, ...] = (0.2, 0.5, 0.8)
    sequence: bool | None = None


LAYOUTS = {
    "hybrid sharding": TraceLayout(_HYBRID),
    "gradients behind tensors": TraceLayout(_TENSOR),
    "launch-bound": TraceLayout((JobShape(dp=8, layers=4), JobShape(dp=8, sharded=True, layers=4)), (1.3, 1.7)),
    "launch-bound hybrid sharding": TraceLayout(_HYBRID, (1.3, 1.7)),
    "pipeline with numbers": TraceLayout(_PIPELINES, sequence=True),
    "pipeline without numbers": TraceLayout(_PIPELINES, sequence=False),
    "gathers beside compute": TraceLayout(_BESIDE),
    "receives beside compute": TraceLayout(tuple(replace(shape, beside=True) for shape in _PIPELINES)),
    "a stray send": TraceLayout(
        (JobShape(dp=8, layers=4, stray_ranks=(4, 5)), JobShape(dp=16, layers=3, stray_ranks=(2, 9)))
    ),
}


def draw_foreign(layout: str, kind: str, seed: int) -> tuple[FaultCase, list[Trace], PlantedJob]:
    """One case with its traces."""
    of = LAYOUTS[layout]
    return draw(kind, seed, of.shapes, launch_shares=of.launch_shares, sequence=of.sequence)
