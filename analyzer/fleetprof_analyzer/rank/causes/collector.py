"""Python's garbage collector, by its own word: what gc.callbacks told the agent, or its frames in the trace.

The agent hears it for some seconds before the window too: where iterations are short, a window may lie between two long
runs. Guarantees: pure; a silence alone is never taken for it.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.share import find_share
from fleetprof_analyzer.rank.host.marks import find_collections
from fleetprof_analyzer.trace.intervals import Union, covered, join, length, union
from fleetprof_analyzer.trace.trace import Category

_LEAST_RUNS: Final = 4  # before the iterations
_RARER: Final = 0.5  # the share in the iterations, of that before them


def find_collector(view: RankView) -> KnownCause | None:
    """Runs within the iterations; those before, with `iterations` 0, where these have fewer by far."""
    rows = view.trace.rows
    frames = rows.select(rows.category == Category.COLLECTION)
    runs = union(frames.start_ns, frames.end_ns)
    if view.samples is not None:
        runs = join(runs, find_collections(view.samples))
    inside = covered(runs[0], view.whole)
    before = _find_before(view, runs)
    if before is not None and view.cost_ns(runs) < _RARER * before.time_ns:
        return before
    if not inside.any():
        return None
    return KnownCause(
        cause="garbage_collection",
        time_ns=view.cost_ns(runs),
        gain_permille=find_share(view, view.each_cost_ns(runs), runs),
        count=int(inside.sum()),
        iterations=int(np.count_nonzero(view.each_ns(runs))),
        longest_ns=int((runs[1] - runs[0])[inside].max()),
    )


def _find_before(view: RankView, runs: Union) -> KnownCause | None:
    """The time that collections would take at the rate from the first run that was heard up to the iterations."""
    if not view.iterations:
        return None
    begins = view.iterations[0].start_ns
    start, end = (side[runs[1] <= begins] for side in runs)
    if len(start) < _LEAST_RUNS:
        return None
    share = float((end - start)[1:].sum()) / (begins - int(end[0]))
    return KnownCause(
        cause="garbage_collection",
        time_ns=round(share * length(view.free)),
        count=len(start),
        longest_ns=int((end - start).max()),
    )
