"""Finds which operations of different ranks are one and the same collective.

The keys (keys.py) are tried from the surest to the least sure; where nothing says the groups, the ends of the
operations must confirm them. Guarantees: what cannot be matched is counted and never used; below 90 % agreement, of all
operations or of those that are no pairs, there is no match, and what forbids it is told.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks
from fleetprof_analyzer.job.stragglers.replay.keys import (
    LEAST_AGREEMENT,
    ORDER,
    PAIR,
    Key,
    is_pairwise,
    key_as_one_group,
    key_by_order,
    key_by_sequence,
    number_keys,
)
from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.job.stragglers.replay.partners.matched import ONE_GROUP
from fleetprof_analyzer.job.stragglers.replay.partners.matched import Matched as Matched
from fleetprof_analyzer.job.stragglers.replay.partners.stand_ins import add_stand_ins
from fleetprof_analyzer.job.stragglers.replay.partners.uneven import drop_uneven, place_dropped
from fleetprof_analyzer.job.stragglers.replay.partners.windows import shifts_by_ends
from fleetprof_analyzer.rank.communication.operations import KINDS, RankOperations
from fleetprof_analyzer.trace.trace import Int64s


def match(ranks: Sequence[RankOperations]) -> Matched:
    """Matches the operations of distinct ranks, in any order."""
    ordered = sorted(ranks, key=lambda one: -1 if one.rank is None else one.rank)
    found = None
    for method, make_keys in (
        ("sequence numbers", key_by_sequence),
        ("order within process groups", key_by_order),
        (ONE_GROUP, key_as_one_group),
    ):
        iterations, iteration = _common_iterations(ordered, make_keys is key_by_sequence)
        if not iterations:
            return _refused(ordered, Mismatch("no_common_iteration"))
        keys = make_keys(ordered, iteration)
        if keys is None:
            continue
        dropped = drop_uneven(keys)
        found = _join(ordered, iterations, iteration, keys, method)
        if dropped and found.count:
            clocks = align_clocks(found)
            place_dropped(ordered, keys, dropped, (clocks.offset_ns, clocks.aligned.tolist()))
            found = _join(ordered, iterations, iteration, keys, method)
        if _agrees(found):
            return add_stand_ins(found, keys)
    if found is None:
        return _refused(ordered, Mismatch("groups_not_known"))
    share = 100 * (1 - found.unmatched / max(found.operations, 1))
    return _refused(ordered, Mismatch("few_partners", share))


def _agrees(found: Matched) -> bool:
    """Tells whether enough was matched: of all operations, and of the collectives, whom many pairs must not outvote.

    Operations whose partners are known and were not captured say nothing about how the others match.
    """
    collectives = sum(
        int(((iteration >= 0) & ~is_pairwise(one)).sum())
        for one, iteration in zip(found.ranks, found.iteration, strict=True)
    )
    alone = sum(found.alone.values())
    left, left_alone = (
        sum(count for kind, count in kinds.items() if kind not in ("send", "receive"))
        for kinds in (found.unmatched_kinds, found.alone)
    )
    allowed, rest = 1 - LEAST_AGREEMENT, found.operations - alone
    return found.unmatched - alone <= allowed * rest and left - left_alone <= allowed * (collectives - left_alone)


def _refused(ranks: list[RankOperations], mismatch: Mismatch) -> Matched:
    none = [np.full(len(one), -1, np.int64) for one in ranks]
    return Matched(ranks, [], none, [n.copy() for n in none], 0, np.zeros(0, np.bool_), mismatch=mismatch)


def _common_iterations(ranks: list[RankOperations], by_sequence: bool) -> tuple[list[int], list[Int64s]]:
    """(indices of the iterations that all ranks hold, per rank each operation's place among them or -1)."""
    if all(one.indices_proven for one in ranks):
        common = set(ranks[0].iterations).intersection(*(one.iterations for one in ranks))
        shared = sorted(common)
        place = {index: number for number, index in enumerate(shared)}
        return shared, [_renumber(one, [place.get(index, -1) for index in one.iterations]) for one in ranks]
    shift = _shifts_by_sequence(ranks) if by_sequence else None
    if shift is None:
        shift = shifts_by_ends(ranks)
    first = max(shift)
    last = min(one_shift + len(one.iterations) for one, one_shift in zip(ranks, shift, strict=True))
    numbers = [
        [s + n - first if first <= s + n < last else -1 for n in range(len(one.iterations))]
        for one, s in zip(ranks, shift, strict=True)
    ]
    shared = [index for index, number in zip(ranks[0].iterations, numbers[0], strict=True) if number >= 0]
    return shared, [_renumber(one, number) for one, number in zip(ranks, numbers, strict=True)]


def _renumber(one: RankOperations, numbers: list[int]) -> Int64s:
    table = np.array([*numbers, -1], np.int64)
    return np.asarray(table[one.columns.iteration])


def _shifts_by_sequence(ranks: list[RankOperations]) -> list[int] | None:
    """The shift of each rank's count of iterations, from operations that carry the same sequence number."""
    holders: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(ranks):
        for key, iteration in zip(number_keys(one), one.columns.iteration.tolist(), strict=True):
            if key is not None and iteration >= 0:
                holders[key].append((number, iteration))
    votes: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for members in holders.values():
        first, at = members[0]
        for other, iteration in members[1:]:
            votes[first, other][at - iteration] += 1
    shift: dict[int, int] = {0: 0}
    links = {pair: counter.most_common(1)[0][0] for pair, counter in votes.items()}
    for _ in ranks:
        for (first, other), difference in links.items():
            if first in shift and other not in shift:
                shift[other] = shift[first] + difference
            elif other in shift and first not in shift:
                shift[first] = shift[other] - difference
    return [shift[number] for number in range(len(ranks))] if len(shift) == len(ranks) else None


def _join(
    ranks: list[RankOperations], iterations: list[int], iteration: list[Int64s], keys: list[list[Key]], method: str
) -> Matched:
    captured = {one.rank for one in ranks}
    holders: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for number, of_rank in enumerate(keys):
        inside = iteration[number]
        for position, key in enumerate(of_rank):
            if key is not None and inside[position] >= 0:
                holders[key].append((number, position))
    collective = [np.full(len(one), -1, np.int64) for one in ranks]
    whole: list[bool] = []
    missing: set[int] = set()
    alone: Counter[str] = Counter()
    for key, members in holders.items():
        expected = _expected(ranks, key, members)
        if len(members) == 1 and len(expected) > 1 and len(expected & captured) == 1:
            number, position = members[0]
            alone[KINDS[ranks[number].columns.kind[position]]] += 1
        here = {ranks[number].rank for number, _ in members}
        if len(here) != len(members) or here != expected & captured or len(members) < min(2, len(expected)):
            continue
        missing |= {rank for rank in expected - captured if rank is not None}
        for number, position in members:
            collective[number][position] = len(whole)
        whole.append(expected <= captured)
    total = sum(int((numbers >= 0).sum()) for numbers in iteration)
    left: Counter[str] = Counter()
    for one, numbers, found in zip(ranks, iteration, collective, strict=True):
        left.update(KINDS[kind] for kind in one.columns.kind[(numbers >= 0) & (found < 0)].tolist())
    return Matched(
        ranks, iterations, iteration, collective, len(whole), np.array(whole, np.bool_), method=method,
        operations=total, unmatched=left.total(), unmatched_kinds=dict(left), missing=sorted(missing),
        alone=dict(alone),
    )  # fmt: skip


def _expected(ranks: list[RankOperations], key: Key, members: list[tuple[int, int]]) -> set[int | None]:
    """Who must take part: the pair, the members that the group is said to have, else all ranks."""
    what: Any = () if key is None else key[0]
    if what[:1] == (PAIR,):
        return set(what[1])
    number, position = members[0]
    group = ranks[number].groups[int(ranks[number].columns.group[position])]
    one_group = what[:2] == (ORDER, "all")
    if group.members and not one_group:
        return set(group.members)
    if group.name and not one_group:
        # Members unsaid: those who know the name.
        return {
            one.rank
            for one in ranks
            if any(other.name == group.name and other.size == group.size for other in one.groups)
        }
    return {one.rank for one in ranks}
