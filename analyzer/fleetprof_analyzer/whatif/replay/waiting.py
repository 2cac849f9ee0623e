"""The row that each wait of the host awaits: of those launched before it, the one that ended last when it went on.

No trace names it for all calls; a copy that blocks, a full queue of launches and a call that synchronizes are alike by
what they do. Guarantees: pure.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s

TOLERANCE_NS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Awaited:
    """Waits in time order: [`begin_ns`, `end_ns`), the row each awaits (-1: none), and whether that ended within it."""

    begin_ns: Int64s
    end_ns: Int64s
    row: Int64s
    binds: Bools


def find_awaited(begin_ns: Int64s, end_ns: Int64s, place: Int32s, called_ns: Int64s, row_end_ns: Int64s) -> Awaited:
    """The waits, shape (w,); the rows, shape (n,), are in the order of their launches, and end so on each stream."""
    best = np.full(len(begin_ns), -1, np.int64)
    best_end = np.full(len(begin_ns), np.iinfo(np.int64).min, np.int64)
    for stream in np.unique(place):
        here = np.flatnonzero(place == stream)
        ends = np.maximum.accumulate(row_end_ns[here])
        launched = np.searchsorted(called_ns[here], begin_ns, side="right")
        ended = np.searchsorted(ends, end_ns + TOLERANCE_NS, side="right")
        last = np.minimum(launched, ended) - 1
        found = last >= 0
        end = np.where(found, ends[np.maximum(last, 0)], best_end)
        later = found & (end > best_end)
        best[later], best_end[later] = here[last[later]], end[later]
    return Awaited(begin_ns, end_ns, best, best_end > begin_ns)
