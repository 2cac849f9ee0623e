"""Orders matched operations so that each comes after all that it waits for (docs/measures.md#stragglers).

Nodes are collectives and stops (where a rank's chain waits for an operation, or its host for the chain). Guarantees:
every step needs only results of earlier steps.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.trace.trace import Int64s


@dataclass(frozen=True, slots=True)
class Step:
    """Collectives that can be computed at once (`operations` sorted by them, `first` where each begins), or stops."""

    collectives: Int64s
    operations: Int64s
    first: Int64s
    stops: Int64s


@dataclass(frozen=True, slots=True)
class Stuck:
    """The point of a walk's stop: the mark of each rank (-1: through), what was launched, which collectives ended."""

    at: list[int]
    passed: list[bool]
    ended: list[bool]


def order(layout: ReplayLayout) -> list[Step] | Stuck:
    """Walks every rank's marks until all have passed, or stop before that."""
    operations = len(layout.rank)
    ranks = int(layout.rank.max()) + 1 if operations else 0
    collective = layout.collective.tolist()
    before = [
        [one for one in all_of_it if one >= 0]
        for all_of_it in zip(*(earlier.tolist() for earlier in layout.earlier), strict=True)
    ]
    following: list[list[int]] = [[] for _ in range(operations)]
    for operation, earlier in enumerate(before):
        for one in earlier:
            following[one].append(operation)
    missing = np.bincount(layout.collective, minlength=layout.collectives).tolist()
    members: list[list[int]] = [[] for _ in range(layout.collectives)]
    for operation, number in enumerate(collective):
        members[number].append(operation)
    rank_of = layout.rank.tolist()
    level = [-1] * layout.collectives
    needed = [0] * layout.collectives
    passed = [-1] * operations  # level at which the launch mark was passed
    mark_operation, mark_joins = layout.mark_operation.tolist(), layout.mark_joins.tolist()
    bounds = np.searchsorted(layout.mark_rank, np.arange(ranks + 1)).tolist()
    pointer = bounds[:-1]
    rank_level = [0] * ranks
    stop_level = [0] * len(layout.stop_mark)
    mark_stops = layout.mark_stops.tolist()
    stop_of_mark = (np.cumsum(mark_stops) - 1).tolist()
    work = list(range(ranks))
    resolved = 0

    def make_ready(operation: int) -> None:
        """Once its launch is passed and all before it have ended."""
        nonlocal resolved
        stack = [operation]
        while stack:
            one = stack.pop()
            number = collective[one]
            ended = [level[collective[earlier]] for earlier in before[one]]
            if passed[one] < 0 or min(ended, default=0) < 0:
                continue
            needed[number] = max(needed[number], passed[one], *ended)
            missing[number] -= 1
            if missing[number]:
                continue
            level[number] = needed[number] + 1
            resolved += 1
            for member in members[number]:
                work.append(rank_of[member])
                stack += following[member]

    while work:
        rank = work.pop()
        while pointer[rank] < bounds[rank + 1]:
            mark = pointer[rank]
            operation = mark_operation[mark]
            if mark_stops[mark]:
                if mark_joins[mark]:
                    if level[collective[operation]] < 0:
                        break
                    rank_level[rank] = max(rank_level[rank], level[collective[operation]])
                stop_level[stop_of_mark[mark]] = rank_level[rank]
                pointer[rank] += 1
                continue
            pointer[rank] += 1
            passed[operation] = rank_level[rank]
            make_ready(operation)
    if resolved < layout.collectives:
        at = [mark if mark < bounds[rank + 1] else -1 for rank, mark in enumerate(pointer)]
        return Stuck(at, [one >= 0 for one in passed], [one >= 0 for one in level])
    return _steps(layout, np.array(level), np.array(stop_level, np.int64))


def _steps(layout: ReplayLayout, level: Int64s, stop_level: Int64s) -> list[Step]:
    by_collective = np.lexsort((layout.collective, level[layout.collective]))
    sorted_collectives = layout.collective[by_collective]
    sorted_levels = level[sorted_collectives]
    # Stops of one rank and level follow each other: the n-th of them all at once.
    rank = layout.mark_rank[layout.stop_mark]
    begins = np.ones(len(rank), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (stop_level[1:] != stop_level[:-1])
    numbers = np.arange(len(rank))
    turn = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    stop_order = np.lexsort((turn, stop_level))
    steps: list[Step] = []
    none = np.zeros(0, np.int64)
    turns, levels = turn[stop_order], stop_level[stop_order]
    stop_cuts = np.flatnonzero(np.diff(turns, prepend=-1) | np.diff(levels, prepend=-1)) if len(turns) else none
    stops_at: dict[int, list[Int64s]] = {}
    for begin, end in pairwise([*stop_cuts, len(stop_order)]):
        stops_at.setdefault(int(levels[begin]), []).append(stop_order[begin:end])
    steps += [Step(none, none, none, stops) for stops in stops_at.get(0, [])]
    cuts = np.flatnonzero(np.diff(sorted_levels, prepend=-1))
    for begin, end in pairwise([*cuts, len(sorted_levels)]):
        here = sorted_collectives[begin:end]
        first = np.flatnonzero(np.diff(here, prepend=-1))
        steps.append(Step(here[first], by_collective[begin:end], first, none))
        steps += [Step(none, none, none, stops) for stops in stops_at.get(int(sorted_levels[begin]), [])]
    return steps
