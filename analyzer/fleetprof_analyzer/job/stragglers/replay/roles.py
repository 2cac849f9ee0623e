"""Which ranks do the same work, so that one can be the measure of another.

Two ranks have one role when their iterations hold the same sequences of collectives (kind, size of group, direction)
on their streams and they stand equally deep in the pipeline. How the streams' operations lie between each other is no
matter: where launches were not recorded, that shows who was late. Guarantees: pure; depths come from who receives from
whom first, never from numbers; sends that belong to no pattern of the job make no role (strays.py).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS, RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

_SEND: Final = KINDS.index("send")
_RECEIVE: Final = KINDS.index("receive")
Program = tuple[tuple[tuple[int, int], ...], ...]  # by stream


def find_roles(matched: Matched, strays: Sequence[Bools]) -> Int64s:
    """A role number per rank, shape (R,)."""
    within = _within(matched, strays)
    depths = _pipeline_depths(matched, within)
    numbers: dict[tuple[int, Program], int] = {}
    roles = [
        numbers.setdefault((depth, _program(matched, number, within[number])), len(numbers))
        for number, depth in enumerate(depths)
    ]
    return np.array(roles, np.int64)


def find_depths(matched: Matched, strays: Sequence[Bools]) -> list[int]:
    """The number of ranks before each one in its pipeline, shape (R,)."""
    return _pipeline_depths(matched, _within(matched, strays))


def _within(matched: Matched, strays: Sequence[Bools]) -> list[Int64s]:
    return [np.where(stray, -1, numbers) for stray, numbers in zip(strays, matched.iteration, strict=True)]


def _program(matched: Matched, number: int, iteration: Int64s) -> Program:
    """The operations that most iterations of a rank hold."""
    one = matched.ranks[number]
    sizes = [group.size or len(group.members) for group in one.groups]
    kinds, groups, places = (getattr(one.columns, name).tolist() for name in ("kind", "group", "place"))
    programs: list[dict[int, list[tuple[int, int]]]] = [defaultdict(list) for _ in matched.iterations]
    for position, at in enumerate(iteration.tolist()):
        if at >= 0:
            kind = kinds[position]
            size = 0 if kind in (_SEND, _RECEIVE) else sizes[groups[position]]
            programs[at][places[position]].append((kind, size))
    common = Counter(tuple(sorted(map(tuple, program.values()))) for program in programs).most_common(1)
    return common[0][0] if common else ()


def _first_senders(one: RankOperations, iteration: Int64s) -> list[int]:
    """From whom a rank receives in the send or receive that ends first, by iteration; -1 where it sends in it."""
    columns = one.columns
    pairwise = np.flatnonzero(np.isin(columns.kind, (_SEND, _RECEIVE)) & (iteration >= 0))
    pairwise = pairwise[np.lexsort(((columns.start_ns + columns.duration_ns)[pairwise], iteration[pairwise]))]
    first = pairwise[np.flatnonzero(np.diff(iteration[pairwise], prepend=-1))]
    return [int(columns.peer[at]) if columns.kind[at] == _RECEIVE else -1 for at in first]


def _pipeline_depths(matched: Matched, within: Sequence[Int64s]) -> list[int]:
    """A stage first receives from the stage before it; a receive from behind may begin sooner, but ends later."""
    place = {one.rank: number for number, one in enumerate(matched.ranks)}
    before: dict[int, int] = {}
    for number, one in enumerate(matched.ranks):
        senders = [place.get(sender, -1) for sender in _first_senders(one, within[number])]
        if senders and (sender := Counter(senders).most_common(1)[0][0]) >= 0:
            before[number] = sender
    depths = []
    for number in range(len(matched.ranks)):
        depth, at = 0, number
        seen = {number}
        while at in before and before[at] not in seen:
            at = before[at]
            seen.add(at)
            depth += 1
        depths.append(depth)
    return depths
