"""Lets ranks that left no trace take part in a replay as captured ranks do that do the same work.

Without them the others would wait at their operations for as long as was measured, whoever is late, so that a what-if
ended no sooner. Guarantees: pure; a rank stands in for another only where nearly all operations of the captured ranks
with that one are found among its own; where none does, the missing rank is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.keys import LEAST_AGREEMENT, ORDER, PAIR, Key
from fleetprof_analyzer.job.stragglers.replay.partners.matched import Matched
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.trace.trace import Int64s

Members = tuple[int, ...]


def add_stand_ins(found: Matched, keys: Sequence[Sequence[Key]]) -> Matched:
    """The match, with what a replay plays in `played`. `keys` are those of all operations, by rank."""
    captured = {one.rank for one in found.ranks}
    if not _partners(found) - captured:
        return found
    inside = [
        [key if number >= 0 else None for key, number in zip(of_rank, iteration.tolist(), strict=True)]
        for of_rank, iteration in zip(keys, found.iteration, strict=True)
    ]
    wanted: dict[int, set[Key]] = defaultdict(set)
    for key in {key for of_rank in inside for key in of_rank}:
        for rank in {*_members(key)} - captured:
            wanted[rank].add(key)
    # Few ranks cannot stand for many.
    if not wanted or len(wanted) > len(captured):
        return found
    names: dict[Members, set[str]] = defaultdict(set)
    for one in found.ranks:
        for group in one.groups:
            names[group.members].add(group.name)
    waited = np.array([
        one.columns.duration_ns[iteration >= 0].sum()
        for one, iteration in zip(found.ranks, found.iteration, strict=True)
    ])  # fmt: skip
    together = [{_members(key) for key in of_rank if not _is_pair(key)} for of_rank in inside]
    stand_ins: list[tuple[int, int, list[Key]]] = []
    for rank in sorted(wanted):
        shared = np.array([sum(rank in members for members in groups) for groups in together])
        for number in _by_likeness(shared, waited):
            theirs = _translate(found.ranks[number], rank, inside[number], names)
            if theirs is not None and _agree(theirs, wanted[rank], captured):
                stand_ins.append((rank, number, theirs))
                break
    return replace(found, played=_play(found, inside, stand_ins)) if stand_ins else found


def _partners(found: Matched) -> set[int]:
    """Whom the captured ranks share groups with, or send to or receive from."""
    members = {rank for one in found.ranks for group in one.groups for rank in group.members}
    return members.union(*(np.unique(one.columns.peer).tolist() for one in found.ranks)) - {-1}


def _is_pair(key: Key) -> bool:
    return key is not None and key[0][0] == PAIR


def _members(key: Key) -> Members:
    """The ranks that a key says; none where it says a name only."""
    what: Any = () if key is None else key[0]
    return what[1] if len(what) > 1 and isinstance(what[1], tuple) else ()


def _by_likeness(shared: Int64s, waited_ns: Int64s) -> list[int]:
    """Sorts ranks first that share most groups with a missing one, which are of its stage.

    Among these, who waits in operations for as long as most do: a late rank waits least.
    """
    found: list[int] = []
    for number in sorted({*shared.tolist()}, reverse=True):
        here = np.flatnonzero(shared == number)
        # Of two ranks the one that waits longer.
        typical = np.sort(waited_ns[here])[len(here) // 2]
        found += here[np.argsort(np.abs(waited_ns[here] - typical), kind="stable")].tolist()
    return found


def _translate(
    one: RankOperations, rank: int, keys: Sequence[Key], names: Mapping[Members, Set[str]]
) -> list[Key] | None:
    """The keys that `rank` has if it does what `one` does; None where it has no groups like those.

    `names` are those of all groups, by members.
    """
    mine: dict[Members, Members] = {(): ()}
    for members in {_members(key) for key in keys if not _is_pair(key)} - {()}:
        # The same pattern of ranks: tensor-parallel neighbors are none of the data-parallel ones.
        alike = [members] if rank in members else [
            other for other in names if rank in other and _pattern(other) == _pattern(members)
        ]  # fmt: skip
        if len(alike) != 1 or len(names[alike[0]]) != len(names[members]):
            return None
        mine[members] = alike[0]
    apart = rank - (one.rank or 0)

    def translate(key: Key) -> Key:
        if key is None or not (members := _members(key)):
            return key
        (kind, _, *rest), nth = key
        if kind == PAIR:
            return ((kind, tuple(other + apart for other in members), *rest), nth)
        if kind != ORDER:
            ours, theirs = sorted(names[members]), sorted(names[mine[members]])
            rest[0] = theirs[ours.index(str(rest[0]))]
        return ((kind, mine[members], *rest), nth)

    return [translate(key) for key in keys]


def _pattern(members: Members) -> Members:
    return tuple(rank - members[0] for rank in members)


def _agree(theirs: Sequence[Key], wanted: Set[Key], captured: Set[int | None]) -> bool:
    """Tells if nearly all operations with captured ranks that a rank would have are wanted, and the other way round.

    Of collectives as of pairs, whose number must not outvote them.
    """
    met = {key for key in theirs if not captured.isdisjoint(_members(key))}
    return all(
        len({key for key in met & wanted if _is_pair(key) == pairs})
        >= LEAST_AGREEMENT * max(len({key for key in one if _is_pair(key) == pairs}) for one in (met, wanted))
        for pairs in (False, True)
    )


def _play(found: Matched, keys: list[list[Key]], stand_ins: list[tuple[int, int, list[Key]]]) -> Matched:
    """All captured ranks and those who stand in: (missing rank, position of who stands in, the keys) of each."""
    captured = {one.rank for one in found.ranks}
    numbers = {
        key: number
        for of_rank, numbers_of_rank in zip(keys, found.collective, strict=True)
        for key, number in zip(of_rank, numbers_of_rank.tolist(), strict=True)
        if key is not None and number >= 0
    }
    holders = Counter(key for of_rank in keys for key in of_rank)
    count = found.count
    for key in {key for _, _, theirs in stand_ins for key in theirs if key is not None} - numbers.keys():
        # What captured ranks lack among themselves is no partner for a stand-in either.
        if holders[key] == len(captured.intersection(_members(key))):
            numbers[key], count = count, count + 1

    def number_all(of_rank: Sequence[Key]) -> Int64s:
        return np.array([-1 if key is None else numbers.get(key, -1) for key in of_rank], np.int64)

    donors = [number for _, number, _ in stand_ins]
    return replace(
        found,
        ranks=[*found.ranks, *(_as_rank(found.ranks[number], rank) for rank, number, _ in stand_ins)],
        iteration=[*found.iteration, *(found.iteration[number] for number in donors)],
        collective=[number_all(of_rank) for of_rank in [*keys, *(theirs for _, _, theirs in stand_ins)]],
        count=count,
        whole=np.concatenate((found.whole, np.zeros(count - found.count, np.bool_))),
        like=np.array([*range(len(found.ranks)), *donors]),
    )


def _as_rank(one: RankOperations, rank: int) -> RankOperations:
    peer = one.columns.peer
    moved = np.where(peer >= 0, peer + rank - (one.rank or 0), peer).astype(peer.dtype)
    return replace(one, rank=rank, columns=replace(one.columns, peer=moved))
