"""Which ranks do the same work, so that one can be the measure of another.

Two ranks have one role when their iterations hold the same sequence of collectives (kind, size of group, direction)
and they stand equally deep in the pipeline. Guarantees: pure; depths come from who receives from whom first, never
from numbers; sends that belong to no pattern of the job make no role (strays.py).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.trace import Bools, Int64s

_SEND: Final = KINDS.index("send")
_RECEIVE: Final = KINDS.index("receive")
Program = tuple[tuple[int, int], ...]


def find_roles(matched: Matched, strays: Sequence[Bools]) -> Int64s:
    """A role number per rank, shape (R,)."""
    within = [np.where(stray, -1, numbers) for stray, numbers in zip(strays, matched.iteration, strict=True)]
    depths = _pipeline_depths(matched, within)
    numbers: dict[tuple[int, Program], int] = {}
    roles = [
        numbers.setdefault((depth, _program(matched, number, within[number])), len(numbers))
        for number, depth in enumerate(depths)
    ]
    return np.array(roles, np.int64)


def _program(matched: Matched, number: int, iteration: Int64s) -> Program:
    """What most iterations of a rank hold."""
    one = matched.ranks[number]
    sizes = [group.size or len(group.members) for group in one.groups]
    kinds, groups = one.columns.kind.tolist(), one.columns.group.tolist()
    programs: list[list[tuple[int, int]]] = [[] for _ in matched.iterations]
    for position, at in enumerate(iteration.tolist()):
        if at >= 0:
            kind = kinds[position]
            programs[at].append((kind, 0 if kind in (_SEND, _RECEIVE) else sizes[groups[position]]))
    common = Counter(tuple(program) for program in programs).most_common(1)
    return common[0][0] if common else ()


def _pipeline_depths(matched: Matched, within: Sequence[Int64s]) -> list[int]:
    """How many ranks stand before each one in its pipeline: a stage first receives from the stage before it."""
    place = {one.rank: number for number, one in enumerate(matched.ranks)}
    before: dict[int, int] = {}
    for number, one in enumerate(matched.ranks):
        columns = one.columns
        pairwise = np.flatnonzero(np.isin(columns.kind, (_SEND, _RECEIVE)) & (within[number] >= 0))
        if len(pairwise) and columns.kind[pairwise[0]] == _RECEIVE:
            sender = place.get(int(columns.peer[pairwise[0]]))
            if sender is not None:
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
