"""A loop that runs its model without a backward pass now and then: it evaluates, or generates.

Guarantees: pure; what it does in most iterations, as where a teacher's model runs beside the one that trains, is none.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView, overlap
from fleetprof_analyzer.rank.causes.share import find_share
from fleetprof_analyzer.rank.host.hot_path import find_place
from fleetprof_analyzer.rank.host.track import read_track, within
from fleetprof_analyzer.trace.intervals import union
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.stage_names import is_layer
from fleetprof_analyzer.trace.trace import Int64s

_MOST_OFTEN: Final = 0.5  # of the iterations
_LEAST: Final = 3  # operators of the model
_ITS_ENDS: Final = 0.5  # of what its layers take


def find_evaluation(view: RankView) -> KnownCause | None:
    """From the first to the last such operator of an iteration; where the model trains in between, these alone."""
    thread = view.stages.thread
    if thread is None or not view.iterations:
        return None
    top, names = thread.top, view.trace.names
    trained = np.unique(top.name[thread.trains & where_name(top, names, is_layer)])
    alone = np.flatnonzero(np.isin(top.name, trained) & ~thread.trains)
    starts, ends = [], []
    for one in view.iterations:
        here = alone[(top.start_ns[alone] >= one.start_ns) & (top.start_ns[alone] < one.start_ns + one.duration_ns)]
        if len(here) < _LEAST:
            continue
        trains_between = thread.trains[here[0] : here[-1]].any()
        starts.append(top.start_ns[here] if trains_between else top.start_ns[here[:1]])
        ends.append(top.end_ns[here] if trains_between else top.end_ns[here[-1:]])
    if not starts or len(starts) > _MOST_OFTEN * len(view.iterations):
        return None
    spans = union(np.concatenate(starts), np.concatenate(ends))
    track = None if view.samples is None else read_track(view.samples)
    pairs = list(zip(spans[0].tolist(), spans[1].tolist(), strict=True))
    return KnownCause(
        cause="evaluation",
        time_ns=overlap(spans, view.whole),
        gain_permille=find_share(view, _with_its_ends(view, view.each_ns(spans)), spans),
        count=len(starts),
        iterations=len(starts),
        longest_ns=int((spans[1] - spans[0]).max()),
        # The rows prove it; one sample between them knows whose call it is.
        place=None if track is None else find_place(within(track, pairs), 1),
    )


def _with_its_ends(view: RankView, each_ns: Int64s) -> Int64s:
    """Adds to its layers the metrics and prints around them: what its iterations take longer, up to a part."""
    lengths = np.array([one.duration_ns for one in view.iterations], np.int64)
    if each_ns.all():
        return each_ns
    longer = lengths - int(np.median(lengths[each_ns == 0]))
    most = each_ns + (_ITS_ENDS * each_ns).astype(np.int64)
    return np.asarray(np.where(each_ns > 0, np.clip(longer, each_ns, most), 0), np.int64)
