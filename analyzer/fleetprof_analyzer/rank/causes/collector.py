"""Python's garbage collector, by its own word: what gc.callbacks told the agent, or its frames in the trace.

Guarantees: pure; a silence alone is never taken for it.
"""

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.host.marks import find_collections
from fleetprof_analyzer.trace.intervals import covered, join, union
from fleetprof_analyzer.trace.trace import Category


def find_collector(view: RankView) -> KnownCause | None:
    """Runs of the collector within the iterations."""
    rows = view.trace.rows
    frames = rows.select(rows.category == Category.COLLECTION)
    runs = union(frames.start_ns, frames.end_ns)
    if view.samples is not None:
        runs = join(runs, find_collections(view.samples))
    inside = covered(runs[0], view.whole)
    if not inside.any():
        return None
    return KnownCause(
        cause="garbage_collection",
        time_ns=view.cost_ns(runs),
        count=int(inside.sum()),
        iterations=int(np.count_nonzero(view.each_ns(runs))),
        longest_ns=int((runs[1] - runs[0])[inside].max()),
    )
