"""The time that a pipeline's devices wait because of its schedule, beside what 1F1B of as many equal stages has.

Guarantees: pure; nothing is said of a job that is no pipeline; what a late rank costs is no bubble.
"""

import numpy as np
from fleetprof_api.report.stragglers import PipelineBubbles

from fleetprof_analyzer.job.stragglers.pipeline.shape import find_shape
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.trace.trace import Int64s


def measure_bubbles(replay: Replay, role: Int64s) -> PipelineBubbles | None:
    """The section's part on pipelines; None where the ranks are in none. `role`, shape (R,), is that of each rank."""
    shape = find_shape(replay)
    if shape is None:
        return None
    nobody_late = replay.with_times(*_with_nobody_late(replay, role), np.ones(len(replay.work_ns), np.bool_))
    course = replay.follow([replay.as_measured(), nobody_late])
    measured = float(course.ends[:, 0].max(initial=0))
    if measured <= 0:
        return None
    return PipelineBubbles(
        share=float(np.mean(_wait_for_others(replay, course.stood[:, 1])) / measured),
        ideal_share=shape.ideal_share,
        stages=shape.stages,
        microbatches=shape.microbatches,
        chunks=shape.chunks,
    )


def _wait_for_others(replay: Replay, stood_ns: Int64s) -> Int64s:
    """The time that each rank's chain waits for other ranks, shape (R,), without the transfers themselves.

    `stood_ns`, shape (J,), is how long it stands still at each stop.
    """
    layout = replay.layout
    transfer_ns = replay.transfer_ns[layout.collective[layout.mark_operation[layout.stop_mark]]]
    waited = np.where(layout.mark_joins[layout.stop_mark], np.maximum(stood_ns - transfer_ns, 0), 0)
    total = np.zeros(len(replay.has_host), np.int64)
    np.add.at(total, layout.mark_rank[layout.stop_mark], waited)
    return total


def _with_nobody_late(replay: Replay, role: Int64s) -> tuple[Int64s, Int64s]:
    """The operations' own work and host's time, shape (N,), at the median of all ranks of a role.

    Of a rank without peers at the median of its own iterations.
    """
    position, iteration = replay.program_position, replay.iteration
    known = (position >= 0) & (iteration >= 0)
    roles = role[replay.like[replay.layout.rank]]
    work, host = replay.work_ns.copy(), replay.host_ns.copy()
    alone = np.bincount(role)[roles] == 1
    place = (roles * (int(position.max(initial=0)) + 1) + position) * (int(iteration.max(initial=0)) + 1)
    place = np.where(alone, place, place + iteration)
    _, owner = np.unique(place[known], return_inverse=True)
    for wanted, measured in ((work, replay.work_ns), (host, replay.host_ns)):
        wanted[known] = _medians(measured[known], owner)[owner]
    return work, host


def _medians(values: Int64s, owner: Int64s) -> Int64s:
    """The medians of each owner, halfway between the two middle values: of two ranks the lower one would be too low."""
    order = np.lexsort((values, owner))
    count = np.bincount(owner)
    first = np.cumsum(count) - count
    ordered = values[order]
    return np.asarray((ordered[first + (count - 1) // 2] + ordered[first + count // 2]) // 2)
