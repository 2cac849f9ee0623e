"""Pauses that code on the stack proves beyond doubt: worker processes that start, checkpoints that are written.

One sample proves such a pause; how long it takes is told by its iteration, beside those without one. Guarantees: pure;
what goes on while a device works costs nothing.
"""

from collections.abc import Callable, Sequence

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.rank.causes.known_code import Frames
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.stacks import look_for
from fleetprof_analyzer.trace.intervals import without
from fleetprof_analyzer.trace.trace import Int64s


def in_pauses(name: KnownCauseName, kinds: Sequence[Frames]) -> Callable[[RankView], KnownCause | None]:
    """A cause that takes what its iterations take longer than the others; if it is in all, what samples show."""

    def find(view: RankView) -> KnownCause | None:
        shown = look_for(view, kinds, least=1)
        pauses = view.each_ns(shown.spans) > 0
        if not pauses.any():
            return None
        sampled = view.each_ns(without(shown.spans, without(shown.spans, view.free)))
        lengths: Int64s = np.array([one.duration_ns for one in view.iterations], np.int64)
        longer = lengths - np.median(lengths[~pauses]) if not pauses.all() else sampled
        taken = np.where(pauses, np.minimum(np.maximum(longer, sampled), view.each_ns(view.free)), 0)
        return KnownCause(
            cause=name,
            time_ns=int(taken.sum()),
            count=int(pauses.sum()),
            iterations=int(pauses.sum()),
            longest_ns=int(taken.max()),
            place=shown.place,
        )

    return find
