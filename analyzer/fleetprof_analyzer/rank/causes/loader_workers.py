"""Worker processes of a DataLoader that start again, as they do for each epoch: by the stacks that start or end them.

Guarantees: pure; all that such an iteration takes longer counts, the wait at the empty queue included.
"""

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.known_code import WORKERS_START
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.stacks import look_for
from fleetprof_analyzer.trace.trace import Int64s


def find_worker_starts(view: RankView) -> KnownCause | None:
    """The iterations in which workers start; where it is all of them, the starts themselves."""
    # One sample proves a start; how long that takes is told by its iteration.
    shown = look_for(view, WORKERS_START, least=1)
    each = view.each_ns(shown.spans)
    starts = each > 0
    if not starts.any():
        return None
    lengths: Int64s = np.array([one.duration_ns for one in view.iterations], np.int64)
    longer = lengths - np.median(lengths[~starts]) if not starts.all() else each
    taken = np.where(starts, np.maximum(longer, each), 0)
    return KnownCause(
        cause="workers_started",
        time_ns=int(np.minimum(taken, view.each_ns(view.free)).sum()),
        count=int(starts.sum()),
        iterations=int(starts.sum()),
        longest_ns=int(taken.max()),
        place=shown.place,
    )
