"""By what operations of different ranks are taken for one: a key per operation, equal keys are one collective.

By process group and sequence number where the traces say them; else by group, kind and order within the iteration;
else by kind and order with all ranks as one group. A send and its receive have the key of the two ranks and their
order; where kernels that do both say one of it only, the order is that of all between the two. A key is (what it is
the n-th of, n). Guarantees: an operation that a method cannot place has no key (None); a method that places too few
gives none.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.operations import KINDS, Group, RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

LEAST_AGREEMENT: Final = 0.9
_SEND: Final = KINDS.index("send")
_RECEIVE: Final = KINDS.index("receive")
# A send or receive that does not say its partner: in a group of two it can only be the other.
_PAIRED: Final = {_SEND: KINDS.index("send_receive"), _RECEIVE: KINDS.index("send_receive")}
Key = tuple[tuple[Hashable, ...], int] | None
Pair = tuple[int, int]
PAIR: Final = "pair"
ORDER: Final = "order"


def is_pairwise(one: RankOperations) -> Bools:
    """Which operations are sends or receives, shape (n,)."""
    return np.isin(one.columns.kind, (_SEND, _RECEIVE))


def _pair(one: RankOperations, position: int) -> Pair | None:
    """(sender, receiver) of a send or receive that says its partner."""
    kind, peer = int(one.columns.kind[position]), int(one.columns.peer[position])
    if kind not in (_SEND, _RECEIVE) or peer < 0 or one.rank is None:
        return None
    return (one.rank, peer) if kind == _SEND else (peer, one.rank)


def number_keys(one: RankOperations) -> list[Key]:
    """Keys by sequence number alone, one per operation. Those that were handed over together share a number: they are
    told apart by their order.
    """
    columns = one.columns
    names = [(group.members, group.name) for group in one.groups]
    met: Counter[tuple[Hashable, ...]] = Counter()
    keys: list[Key] = []
    for position, (sequence, group, kind) in enumerate(
        zip(columns.sequence.tolist(), columns.group.tolist(), columns.kind.tolist(), strict=True)
    ):
        key: Key = None
        if sequence >= 0 and any(names[group]) and _pair(one, position) is None:
            what = ("sequence", *names[group], sequence, _PAIRED.get(kind, kind))
            met[what] += 1
            key = (what, met[what])
        keys.append(key)
    return keys


def key_by_sequence(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    """Keys per rank; None where too few operations of a group have a number, or too few say their group."""
    keys = []
    for one, numbers in zip(ranks, iteration, strict=True):
        of_rank = number_keys(one)
        # Pairs that say their partner are matched by it, with every method: they speak for none.
        without_partner = np.array([_pair(one, position) is None for position in range(len(of_rank))], np.bool_)
        matched = int(np.array([key is not None for key in of_rank], np.bool_)[without_partner].sum())
        grouped = int(_grouped(one)[without_partner].sum())
        if matched < LEAST_AGREEMENT * grouped or 2 * grouped < int(without_partner.sum()):
            return None
        keys.append(_with_unsaid(one, numbers, of_rank))
    return _with_pairs(ranks, iteration, keys)


def key_by_order(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    """Keys per rank, by members where they are said, else by name: names may differ between ranks, members do not.

    None where fewer than half of a rank's operations say their group.
    """
    if any(2 * int(_grouped(one).sum()) < len(one) for one in ranks):
        return None

    def name(one: RankOperations, position: int) -> Hashable:
        group = one.groups[int(one.columns.group[position])]
        return group.members or group.name or "all"

    keys = [_ordered_keys(one, numbers, name) for one, numbers in zip(ranks, iteration, strict=True)]
    return _with_pairs(ranks, iteration, keys)


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


def key_as_one_group(ranks: list[RankOperations], iteration: list[Int64s]) -> list[list[Key]] | None:
    """Keys per rank that take all ranks to be one group; never None."""
    keys = [_ordered_keys(one, numbers, lambda *_: "all") for one, numbers in zip(ranks, iteration, strict=True)]
    return _with_pairs(ranks, iteration, keys)


def _ordered_keys(one: RankOperations, iteration: Int64s, name: Callable[[RankOperations, int], Hashable]) -> list[Key]:
    met: Counter[tuple[Hashable, ...]] = Counter()
    keys: list[Key] = []
    for position, (number, kind) in enumerate(zip(iteration.tolist(), one.columns.kind.tolist(), strict=True)):
        key: Key = None
        if number >= 0 and _pair(one, position) is None:
            what = (ORDER, name(one, position), _PAIRED.get(kind, kind), number)
            met[what] += 1
            key = (what, met[what])
        keys.append(key)
    return keys


def _with_pairs(ranks: list[RankOperations], iteration: list[Int64s], keys: list[list[Key]]) -> list[list[Key]]:
    """The keys with those of sends and receives that say their partner."""
    pairs = [_pairs(one, numbers) for one, numbers in zip(ranks, iteration, strict=True)]
    one_way = _one_way(ranks, pairs)
    for of_rank, found in zip(pairs, keys, strict=True):
        met: Counter[tuple[Hashable, ...]] = Counter()
        for position, (pair, number) in of_rank.items():
            both = (min(pair), max(pair))
            what = (PAIR, both if both in one_way else pair, number)
            met[what] += 1
            found[position] = (what, met[what])
    return keys


def _pairs(one: RankOperations, iteration: Int64s) -> dict[int, tuple[Pair, int]]:
    """(sender and receiver, iteration) of the operations within iterations that say them, by position."""
    chosen = np.flatnonzero(is_pairwise(one) & (iteration >= 0)).tolist()
    pairs = ((position, _pair(one, position)) for position in chosen)
    return {position: (pair, int(iteration[position])) for position, pair in pairs if pair is not None}


def _one_way(ranks: list[RankOperations], pairs: list[dict[int, tuple[Pair, int]]]) -> set[Pair]:
    """Ranks, the lower first, some of whose sends have no receives, but which exchange as often by either's word."""
    counts: Counter[tuple[Pair, int | None, int]] = Counter()
    for one, of_rank in zip(ranks, pairs, strict=True):
        counts.update((pair, one.rank, number) for pair, number in of_rank.values())
    numbers: dict[Pair, set[int]] = defaultdict(set)
    captured = {one.rank for one in ranks}
    for pair, _, number in counts:
        if captured.issuperset(pair):
            numbers[min(pair), max(pair)].add(number)
    matched: Counter[Pair] = Counter()
    total: Counter[Pair] = Counter()
    uneven: set[Pair] = set()
    captured = {one.rank for one in ranks}
    for (low, high), of_pair in numbers.items():
        for number in of_pair:
            of_low, of_high = (
                [counts[way, rank, number] for way in ((low, high), (high, low))] for rank in (low, high)
            )
            matched[low, high] += sum(map(min, of_low, of_high))
            total[low, high] += max(sum(of_low), sum(of_high))
            if sum(of_low) != sum(of_high):
                uneven.add((low, high))
    return {both for both, count in total.items() if both not in uneven and matched[both] < count}
