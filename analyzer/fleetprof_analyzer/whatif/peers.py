"""The times of a rank if it took what a rank of the same work takes.

Guarantees: pure. Peers have the same rows by name; else as many to within a tenth, and the same kinds of operations. Of
several the one whose time is in the middle stands in. A peer with the same rows lends each length; another lends its
pace, iteration by iteration. Where the peers themselves have batches of their own, which shows in their iterations, a
peer lends the pace of the whole window: its lengths would make two ranks' batches one.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Int64s
from fleetprof_analyzer.whatif.replay.course import RankCourse, iterations_of_events
from fleetprof_analyzer.whatif.replay.graph import JobGraph, Lengths

_ALIKE: Final = 0.1
_OWN_BATCHES: Final = 0.02  # of the pace of one against the other, its deviation
_FEWEST: Final = 3


def take_from_peer(graph: JobGraph, lengths: Lengths, late: int) -> tuple[int, tuple[float, float]] | None:
    """Changes one rank's lengths to its peer's; None where there is none.

    (the peer, by how much peers' rows and hosts deviate from each other): the rank may be slower by itself.
    """
    mine = graph.courses[late]
    same = [n for n, one in enumerate(graph.courses) if n != late and _is_same(mine, one)]
    alike = same or [n for n, one in enumerate(graph.courses) if n != late and _is_alike(mine, one)]
    if not alike:
        return None
    total = [int(lengths.row_ns[n].sum() + lengths.host_ns[n].sum()) for n in alike]
    peer = alike[int(np.argsort(total)[(len(total) - 1) // 2])]
    other = graph.courses[peer]
    of_rows = [graph.times[n].iteration for n in (late, peer)]
    if _have_own_batches(graph, lengths, alike):
        of_rows = [np.where(one >= 0, 0, -1) for one in of_rows]
        lengths.row_ns[late] = _at_pace(lengths.row_ns[late], lengths.row_ns[peer], of_rows)
    elif same:
        lengths.row_ns[late] = _lend(lengths.row_ns[late], lengths.row_ns[peer])
    else:
        lengths.row_ns[late] = _at_pace(lengths.row_ns[late], lengths.row_ns[peer], of_rows)
    events = [iterations_of_events(one) for one in (mine, other)]
    if np.array_equal(mine.host.kind, other.host.kind):
        lengths.host_ns[late] = _lend(lengths.host_ns[late], lengths.host_ns[peer])
    else:
        lengths.host_ns[late] = _at_pace(lengths.host_ns[late], lengths.host_ns[peer], events)
    return peer, (_deviation(lengths.row_ns, alike), _deviation(lengths.host_ns, alike))


def _deviation(every_ns: Sequence[Int64s], peers: list[int]) -> float:
    totals = np.array([every_ns[peer].sum() for peer in peers], np.float64)
    return float(totals.std(ddof=1) / max(float(totals.mean()), 1.0)) if len(totals) > 1 else 0.0


def _have_own_batches(graph: JobGraph, lengths: Lengths, peers: list[int]) -> bool:
    """Tells whether the iterations of two peers take more work at different times: each has batches of its own."""
    if len(peers) < 2:
        return False
    count = min(len(graph.courses[peer].bounds) for peer in peers[:2])
    if count < _FEWEST:
        return False
    sums = []
    for peer in peers[:2]:
        at, rows = graph.times[peer].iteration, lengths.row_ns[peer]
        inside = (at >= 0) & (at < count)
        sums.append(np.bincount(at[inside], rows[inside], count)[1:])
    pace = sums[0] / np.maximum(sums[1], 1)
    return float(pace.std() / max(float(pace.mean()), 1e-9)) > _OWN_BATCHES


def _lend(mine: Int64s, other: Int64s) -> Int64s:
    lent = mine.copy()
    lent[1:] = other[1:]  # the window's edge hides the first
    return lent


def _is_same(one: RankCourse, other: RankCourse) -> bool:
    names = [[course.trace.names[n] for n in course.rows.name.tolist()] for course in (one, other)]
    return names[0] == names[1]


def _is_alike(one: RankCourse, other: RankCourse) -> bool:
    counts = len(one.rows), len(other.rows)
    if one.kind != other.kind or abs(counts[0] - counts[1]) > _ALIKE * max(counts):
        return False
    mine, theirs = one.operations, other.operations
    return mine is None or theirs is None or np.array_equal(mine.columns.kind, theirs.columns.kind)


def _at_pace(mine: Int64s, other: Int64s, iterations: Sequence[Int64s]) -> Int64s:
    """My lengths, each iteration's in proportion to the peer's."""
    count = int(max(one.max(initial=-1) for one in iterations)) + 1
    sums = [
        np.bincount(at[at >= 0], lengths[at >= 0], count) for at, lengths in zip(iterations, (mine, other), strict=True)
    ]
    pace = np.append(np.where((sums[0] > 0) & (sums[1] > 0), sums[1] / np.maximum(sums[0], 1), 1.0), 1.0)
    return np.asarray(np.rint(mine * pace[iterations[0]]), np.int64)
