"""The rows of other streams that a row begins behind, told from when rows began, since no trace says it.

A row j of one stream holds another stream up from the first row on that is launched after j and from which none began
before j's end, in no iteration. It counts where it binds at least once: that row began right when j ended, and nothing
else explains it. Guarantees: pure; what never binds is left out.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s
from fleetprof_analyzer.whatif.replay.course import StreamRows
from fleetprof_analyzer.whatif.replay.waiting import TOLERANCE_NS

AT_ONCE_NS: Final = 25_000
_LEAST_LATE_NS: Final = 2_000
_MOST_STREAMS: Final = 16


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Pairs of rows: `later` begins no sooner than `gap_ns` after the end of `earlier`."""

    earlier: Int64s
    later: Int64s
    gap_ns: int


def places_in_program(rows: StreamRows, iteration: Int64s) -> Int64s:
    """The same number for the same row of the program, shape (n,): its name, and its turn on its stream.

    The turn is counted within its iteration where all whole iterations have as many rows there, else it is not told.
    """
    turn = np.zeros(len(rows), np.int64)
    for place in np.unique(rows.place):
        here = np.flatnonzero(rows.place == place)
        inside = here[iteration[here] >= 0]
        if len(inside) == 0:
            continue
        counts = np.bincount(iteration[inside])
        if len(set(counts[counts > 0].tolist())) == 1:
            first = np.searchsorted(iteration[inside], iteration[inside])
            turn[inside] = 1 + np.arange(len(inside)) - first
    return turn * (int(rows.name.max(initial=0)) + 1) + rows.name


def find_dependencies(rows: StreamRows, iteration: Int64s, ready_ns: Int64s, *, proven: bool) -> Dependencies:
    """Between all streams of a rank. `ready_ns`, shape (n,): when launch and stream alone would let each row begin.

    Without `proven` also those of collectives that were never violated.
    """
    key, gaps = places_in_program(rows, iteration), []
    streams = [np.flatnonzero(rows.place == place) for place in _busiest(rows.place)]
    earlier, later = [], []
    for first in streams:
        for second in streams:
            if first is second:
                continue
            before, after, binding = _between(rows, key, first, second, ready_ns, proven)
            earlier.append(before)
            later.append(after)
            gaps.append((rows.start_ns[after] - rows.end_ns[before])[binding])
    if not earlier:
        none = np.zeros(0, np.int64)
        return Dependencies(none, none, 0)
    found = np.concatenate(gaps)
    gap = int(np.median(found)) if len(found) else 0
    return Dependencies(np.concatenate(earlier), np.concatenate(later), max(gap, 0))


def _busiest(place: Int32s) -> list[int]:
    counts = np.bincount(place) if len(place) else np.zeros(0, np.int64)
    return [int(one) for one in np.argsort(-counts, kind="stable")[:_MOST_STREAMS] if counts[one]]


def _between(
    rows: StreamRows, key: Int64s, first: Int64s, second: Int64s, ready_ns: Int64s, proven: bool
) -> tuple[Int64s, Int64s, Bools]:
    """(rows of the first stream, the row of the second that each holds up, whether it was seen to)."""
    end = rows.end_ns[first]
    after = np.searchsorted(second, first)  # the next row of the second that is launched
    begun = np.searchsorted(np.maximum.accumulate(rows.start_ns[second]), end - TOLERANCE_NS)
    beyond = np.maximum(begun - after, 0)
    _, owner = np.unique(key[first], return_inverse=True)
    most = np.zeros(int(owner.max(initial=-1)) + 1, np.int64)
    inside = after + beyond < len(second)
    np.maximum.at(most, owner[inside], beyond[inside])
    at = after + most[owner]
    held = at < len(second)
    row = second[np.minimum(at, len(second) - 1)]
    since = rows.start_ns[row] - end
    binding = held & (since >= -TOLERANCE_NS) & (since <= AT_ONCE_NS)
    binding &= rows.start_ns[row] > ready_ns[row] + _LEAST_LATE_NS
    counts = np.bincount(owner, binding, len(most)) > 0
    counted = counts[owner] | ((rows.operation[row] >= 0) & (not proven))
    kept = np.flatnonzero(held & counted & (since >= -TOLERANCE_NS))
    # Of several rows of the first stream that hold up the same one, the last does.
    last = np.flatnonzero(np.diff(row[kept], append=-1)) if len(kept) else kept
    kept = kept[last]
    return first[kept], row[kept], binding[kept]
