"""Puts the clocks of all ranks onto one, by the operations that all members leave together.

For a merged trace only: no verdict rests on it. Guarantees: pure; what is left between the ranks' ends is reported,
and a rank that shares no such operation is said to be unaligned.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.partners.matched import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS, SYNCHRONISING
from fleetprof_analyzer.trace.trace import Bools, Int64s

_TOGETHER: Final = frozenset(KINDS.index(kind) for kind in SYNCHRONISING)
_PAIRWISE: Final = frozenset(KINDS.index(kind) for kind in ("send", "receive", "send_receive"))
# A receive may end later than its send: pairs join only what nothing else does.
_PAIR_PENALTY_NS: Final = 10**12
# On devices nine in ten members of one operation end within this of each other, or within so much of an iteration.
_LEAST_NS: Final = 100_000
_SHARE: Final = 0.01
_MOST_RESIDUALS: Final = 0.9


@dataclass(frozen=True, slots=True)
class Alignment:
    """`offset_ns`, shape (R,), is to be added to a rank's times; the first rank's clock stays where it is.

    The residuals are over all operations that members leave together: distance of a member's end from their median.
    """

    offset_ns: Int64s
    aligned: Bools
    residual_median_ns: int
    residual_most_ns: int


def align_clocks(matched: Matched) -> Alignment:
    """Offsets along the tree of the links with the least spread."""
    ends = _ends(matched)
    links = sorted(_links(ends))
    count = len(matched.ranks)
    parent = list(range(count))
    neighbours: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def root(rank: int) -> int:
        while parent[rank] != rank:
            parent[rank] = parent[parent[rank]]
            rank = parent[rank]
        return rank

    for _, first, second, difference in links:
        if root(first) != root(second):
            parent[root(first)] = root(second)
            neighbours[first].append((second, -difference))
            neighbours[second].append((first, difference))
    offset, aligned = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    waiting = [0] if count else []
    while waiting:
        rank = waiting.pop()
        aligned[rank] = True
        for other, difference in neighbours[rank]:
            if not aligned[other]:
                offset[other] = offset[rank] + difference
                waiting.append(other)
    left = _residuals(ends, offset, aligned)
    return Alignment(offset, aligned, int(np.median(left)) if len(left) else 0, int(left.max(initial=0)))


def _ends(matched: Matched) -> dict[tuple[int, bool], list[tuple[int, int]]]:
    """(collective, is a pair) -> (rank's position, its end) of its members."""
    ends: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(matched.ranks):
        end = one.columns.start_ns + one.columns.duration_ns
        for position in np.flatnonzero(matched.collective[number] >= 0):
            kind = int(one.columns.kind[position])
            if kind in _TOGETHER or kind in _PAIRWISE:
                key = (int(matched.collective[number][position]), kind in _PAIRWISE)
                ends[key].append((number, int(end[position])))
    return ends


def _links(ends: dict[tuple[int, bool], list[tuple[int, int]]]) -> list[tuple[int, int, int, int]]:
    """(spread, rank, other rank, how much later the other's clock shows the same moment)."""
    differences: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    for (_, pair), members in ends.items():
        first, first_end = members[0]
        for other, end in members[1:]:
            differences[first, other, pair].append(end - first_end)
    links = []
    for (first, other, pair), found in differences.items():
        values = np.array(found, np.int64)
        middle = int(np.median(values))
        spread = int(np.median(np.abs(values - middle)))
        links.append((spread + _PAIR_PENALTY_NS * pair, first, other, middle))
    return links


def end_residuals(matched: Matched, offset_ns: Int64s, aligned: Bools) -> Int64s:
    """Distance of each aligned member's end from the members' median end, ns, under these offsets."""
    return _residuals(_ends(matched), offset_ns, aligned)


def _residuals(ends: dict[tuple[int, bool], list[tuple[int, int]]], offset: Int64s, aligned: Bools) -> Int64s:
    left: list[int] = []
    for (_, pair), members in ends.items():
        if pair or len(members) < 2:
            continue
        # From the first on: a median of Unix times would be rounded to 256 ns.
        first = members[0][1]
        moments = np.array([end - first + int(offset[number]) for number, end in members if aligned[number]], np.int64)
        if len(moments) > 1:
            left += np.abs(moments - int(np.median(moments))).tolist()
    return np.array(left, np.int64)


def ends_together(matched: Matched) -> bool:
    """Tells if operations that were taken to be one for all ranks end as one: else the ranks are in several groups.

    A rank on a busy host is late to note an end, so on hosts none may end before all members have begun.
    """
    if any(one.kind == "cpu" for one in matched.ranks):
        return _all_wait_for_each_other(matched)
    ends = _ends(matched)
    aligned = align_clocks(matched)
    left = _residuals(ends, aligned.offset_ns, aligned.aligned)
    if len(left) == 0:
        return True
    lengths = []
    for one, iteration in zip(matched.ranks, matched.iteration, strict=True):
        inside = np.flatnonzero(iteration >= 0)
        span = one.columns.start_ns[inside[-1]] + one.columns.duration_ns[inside[-1]] - one.columns.start_ns[inside[0]]
        lengths.append(int(span) / len(matched.iterations))
    return float(np.quantile(left, _MOST_RESIDUALS)) <= max(_LEAST_NS, _SHARE * float(np.median(lengths)))


def _all_wait_for_each_other(matched: Matched) -> bool:
    """Tells if there are clocks by which neither the first rank nor another leaves an operation before both are there.

    With several groups some rank is in another one than the first.
    """
    times = [_begins_and_ends(matched, number) for number in range(len(matched.ranks))]
    first_begin, first_end = times[0]
    for begin, end in times[1:]:
        both = (first_end >= 0) & (end >= 0)
        least, most = (first_begin - end)[both], (first_end - begin)[both]
        if len(least) and int(least.max()) > int(most.min()) + _LEAST_NS:
            return False
    return True


def _begins_and_ends(matched: Matched, number: int) -> tuple[Int64s, Int64s]:
    """Begins and ends of one rank's operations, shape (M,); -1 where no operation is left by all members together."""
    columns, collective = matched.ranks[number].columns, matched.collective[number]
    here = np.flatnonzero((collective >= 0) & np.isin(columns.kind, list(_TOGETHER)))
    begin, end = np.full(matched.count, -1, np.int64), np.full(matched.count, -1, np.int64)
    begin[collective[here]] = columns.start_ns[here]
    end[collective[here]] = columns.start_ns[here] + columns.duration_ns[here]
    return begin, end
