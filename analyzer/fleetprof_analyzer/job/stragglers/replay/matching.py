"""Finds which operations of different ranks are one and the same collective.

By process group and sequence number where the traces say them; else by group, kind and order within the iteration;
else, where nothing says the groups, by kind and order with all ranks as one group, which the ends of the operations
must then confirm. A send is matched with its receive by the two ranks and their order. Guarantees: what cannot be
matched is counted and never used; below 90 % agreement, of all operations or of those that are no pairs, there is no
match, and what forbids it is told.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.rank.communication.operations import KINDS, Group, RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

_LEAST_AGREEMENT: Final = 0.9
_SEND: Final = KINDS.index("send")
_RECEIVE: Final = KINDS.index("receive")
# A send or receive that does not say its partner: in a group of two it can only be the other.
_PAIRED: Final = {_SEND: KINDS.index("send_receive"), _RECEIVE: KINDS.index("send_receive")}
_ONE_GROUP: Final = "order, all ranks as one group"
Key = Hashable | None


@dataclass(frozen=True, slots=True)
class Matched:
    """M collectives over R ranks.

    `iteration[r]` and `collective[r]` have one value per operation of rank r, -1: none.
    """

    ranks: list[RankOperations]
    iterations: list[int]  # those that every rank has, as the first rank numbers them
    iteration: list[Int64s]
    collective: list[Int64s]
    count: int
    whole: Bools  # shape (M,): all members of the group were captured
    method: str = ""
    operations: int = 0  # of the common iterations, on all ranks
    unmatched: int = 0
    unmatched_kinds: dict[str, int] = field(default_factory=dict)  # `unmatched` by kind
    missing: list[int] = field(default_factory=list)  # ranks that belong to groups and were not captured
    alone: dict[str, int] = field(default_factory=dict)  # of `unmatched_kinds`, those whose partners are all missing
    mismatch: Mismatch | None = None  # why there is no match; None where there is one

    @property
    def guessed(self) -> bool:
        """Tells whether all ranks were taken to be one group because nothing says the groups."""
        return self.method == _ONE_GROUP


def match(ranks: Sequence[RankOperations]) -> Matched:
    """Matches the operations of distinct ranks, in any order."""
    ordered = sorted(ranks, key=lambda one: -1 if one.rank is None else one.rank)
    found = None
    for method, make_keys in (
        ("sequence numbers", _keys_by_sequence),
        ("order within process groups", _keys_by_order),
        (_ONE_GROUP, _keys_of_one_group),
    ):
        iterations, iteration = _common_iterations(ordered, make_keys is _keys_by_sequence)
        if not iterations:
            return _refused(ordered, Mismatch("no_common_iteration"))
        keys = make_keys(ordered, iteration)
        if keys is None:
            continue
        found = _join(ordered, iterations, iteration, keys, method)
        if _agrees(found):
            return found
    if found is None:
        return _refused(ordered, Mismatch("groups_not_known"))
    share = 100 * (1 - found.unmatched / max(found.operations, 1))
    return _refused(ordered, Mismatch("few_partners", share))


def _agrees(found: Matched) -> bool:
    """Whether enough was matched: of all operations, and of the collectives, whom many pairs must not outvote.

    Operations whose partners are known and were not captured say nothing about how the others match.
    """
    collectives = sum(
        int(((iteration >= 0) & ~_is_pairwise(one)).sum())
        for one, iteration in zip(found.ranks, found.iteration, strict=True)
    )
    alone = sum(found.alone.values())
    left, left_alone = (
        sum(count for kind, count in kinds.items() if kind not in ("send", "receive"))
        for kinds in (found.unmatched_kinds, found.alone)
    )
    allowed, rest = 1 - _LEAST_AGREEMENT, found.operations - alone
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
        # A recording may have missed its beginning: the ends belong together.
        shift = [-len(one.iterations) for one in ranks]
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
    """How far each rank's count of iterations is shifted, from operations that carry the same sequence number."""
    holders: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(ranks):
        for key, iteration in zip(_sequence_keys(one), one.columns.iteration.tolist(), strict=True):
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


def _is_pairwise(one: RankOperations) -> Bools:
    return np.isin(one.columns.kind, (_SEND, _RECEIVE))


def _pair(one: RankOperations, position: int) -> tuple[int, int] | None:
    """(sender, receiver) of a send or receive that says its partner."""
    kind, peer = int(one.columns.kind[position]), int(one.columns.peer[position])
    if kind not in (_SEND, _RECEIVE) or peer < 0 or one.rank is None:
        return None
    return (one.rank, peer) if kind == _SEND else (peer, one.rank)


def _sequence_keys(one: RankOperations) -> list[Key]:
    """Operations that were handed over together share a number: they are told apart by their order."""
    columns = one.columns
    names = [(group.members, group.name) for group in one.groups]
    met: Counter[Key] = Counter()
    keys: list[Key] = []
    for position, (sequence, group, kind) in enumerate(
        zip(columns.sequence.tolist(), columns.group.tolist(), columns.kind.tolist(), strict=True)
    ):
        key: Key = None
        if sequence >= 0 and any(names[group]) and _pair(one, position) is None:
            key = ("sequence", *names[group], sequence, _PAIRED.get(kind, kind))
            met[key] += 1
            key = (key, met[key])
        keys.append(key)
    return keys


def _keys_by_sequence(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    keys = []
    for one, numbers in zip(ranks, iteration, strict=True):
        of_rank = _sequence_keys(one)
        # Pairs that say their partner are matched by it, with every method: they speak for none.
        without_partner = np.array([_pair(one, position) is None for position in range(len(of_rank))], np.bool_)
        matched = int(np.array([key is not None for key in of_rank], np.bool_)[without_partner].sum())
        grouped = int(_grouped(one)[without_partner].sum())
        if matched < _LEAST_AGREEMENT * grouped or 2 * grouped < int(without_partner.sum()):
            return None
        keys.append(_with_pairs(one, numbers, _with_unsaid(one, numbers, of_rank)))
    return keys


def _keys_by_order(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    """By members where they are said, else by name: names may differ between ranks, members do not."""
    if any(2 * int(_grouped(one).sum()) < len(one) for one in ranks):
        return None

    def name(one: RankOperations, position: int) -> Key:
        group = one.groups[int(one.columns.group[position])]
        return group.members or group.name or "all"

    return [_ordered_keys(one, numbers, name) for one, numbers in zip(ranks, iteration, strict=True)]


def _grouped(one: RankOperations) -> Bools:
    """Which operations say their group; those beside them that do not are few, such as a barrier of the hosts."""
    return np.asarray(np.array([_says_group(group) for group in one.groups], np.bool_)[one.columns.group])


def _says_group(group: Group) -> bool:
    return bool(group.members or group.name)


def _with_unsaid(one: RankOperations, iteration: Int64s, keys: list[Key]) -> list[Key]:
    """Operations beside the rest that name no group, such as a barrier of the hosts, are taken to be of all ranks."""
    if _grouped(one).all():
        return keys
    by_order = _ordered_keys(one, iteration, lambda *_: "all")
    return [
        by_order[position] if key is None and not _says_group(one.groups[group]) else key
        for position, (key, group) in enumerate(zip(keys, one.columns.group.tolist(), strict=True))
    ]


def _keys_of_one_group(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    return [_ordered_keys(one, numbers, lambda *_: "all") for one, numbers in zip(ranks, iteration, strict=True)]


def _ordered_keys(one: RankOperations, iteration: Int64s, name: Callable[[RankOperations, int], Key]) -> list[Key]:
    met: Counter[Key] = Counter()
    keys: list[Key] = []
    for position, (number, kind) in enumerate(zip(iteration.tolist(), one.columns.kind.tolist(), strict=True)):
        key: Key = None
        if number >= 0 and _pair(one, position) is None:
            key = ("order", name(one, position), _PAIRED.get(kind, kind), number)
            met[key] += 1
            key = (key, met[key])
        keys.append(key)
    return _with_pairs(one, iteration, keys)


def _with_pairs(one: RankOperations, iteration: Int64s, keys: list[Key]) -> list[Key]:
    met: Counter[Key] = Counter()
    for position, number in enumerate(iteration.tolist()):
        pair = _pair(one, position)
        if pair is not None and number >= 0:
            met[pair, number] += 1
            keys[position] = ("pair", pair, number, met[pair, number])
    return keys


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
    if isinstance(key, tuple) and key[0] == "pair":
        return set(key[1])
    number, position = members[0]
    group = ranks[number].groups[int(ranks[number].columns.group[position])]
    one_group = isinstance(key, tuple) and isinstance(key[0], tuple) and key[0][1] == "all"
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
