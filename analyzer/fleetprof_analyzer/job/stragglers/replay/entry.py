"""When each rank enters the window of a job that goes on: not all together.

The last stage of a pipeline is through with an iteration early and enters the next one early; what it then loads while
nothing comes to it costs nothing. Guarantees: pure; by the replay's own times, no clock of a rank.
"""

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.course import Course
from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.job.stragglers.thresholds import FEWEST
from fleetprof_analyzer.trace.trace import Bools, Int64s


def find_entries(layout: ReplayLayout, course: Course, iteration: Int64s, ranks: int) -> Int64s:
    """When each rank enters, shape (R, S), the last at 0 and the others before: the median of the other iterations.

    `iteration`, shape (N,), is that of each operation. A rank enters where its own time before the first one begins.
    """
    count, stops = int(iteration.max(initial=-1)) + 1, len(layout.stop_mark)
    entries = np.zeros((ranks, course.ends.shape[1]), np.int64)
    if count < FEWEST:
        return entries
    numbers = np.arange(len(layout.mark_stops))
    launch_before = np.concatenate(([0], np.maximum.accumulate(np.where(layout.mark_stops, 0, numbers))[:-1]))
    times = np.zeros((count - 1, *entries.shape), np.int64)
    for rank in range(ranks):
        mine = np.flatnonzero((layout.rank == rank) & (iteration >= 0))
        if not len(mine):
            continue
        begins = np.searchsorted(np.maximum.accumulate(iteration[mine]), np.arange(1, count))
        first = mine[np.minimum(begins, len(mine) - 1)]
        stop = layout.stop_before[first]
        shift = course.shift[np.where(stop >= 0, stop, stops + rank)]
        times[:, rank] = shift + course.worked[launch_before[layout.operation_mark[first]]]
    early = np.median(times - times.max(axis=1, keepdims=True), axis=0)
    return np.asarray(np.rint(early - early.max(axis=0)), np.int64)


def find_waits(
    layout: ReplayLayout, course: Course, lag_ns: Int64s, transfer_ns: Int64s, duration_ns: Int64s, waits: Bools,
    has_host: Bools,
) -> Int64s:  # fmt: skip
    """The time that each rank waited longer in its first operation than in the traces' own course, shape (R,).

    A window begins on each rank where its own host was, at whatever its device did then. So how far the host is ahead
    is known for when the rank begins to wait, and it is ahead of the operation's end by that wait as well. `waits`,
    shape (N,): operations that wait for their chain; `has_host`, shape (R,): ranks whose hosts are followed.
    """
    more = np.zeros(len(has_host), np.int64)
    first = np.searchsorted(layout.rank, np.unique(layout.rank))
    first = first[waits[first] & (layout.stop_before[first] < 0) & has_host[layout.rank[first]]]
    transfer = transfer_ns[layout.collective[first]]
    began = course.ends[layout.collective[first], 0] - transfer
    replayed = began - course.worked[layout.operation_mark[first], 0] - lag_ns[first]
    more[layout.rank[first]] = np.maximum(duration_ns[first] - transfer - replayed, 0)
    return more
