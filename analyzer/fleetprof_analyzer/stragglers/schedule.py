"""Orders matched operations so that each comes after all that it waits for (docs/measures.md#stragglers).

Nodes are collectives and joins (where a rank's chain waits for an operation). Guarantees: every step needs only
results of earlier steps; waiting in a circle, which a real job cannot do, is resolved by letting sends and receives
go, or said.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.communication.operations import KINDS
from fleetprof_analyzer.stragglers.matching import Matched
from fleetprof_analyzer.trace import Bools, Int64s

_PAIRWISE: Final = (KINDS.index("send"), KINDS.index("receive"), KINDS.index("send_receive"))


class Circular(Exception):
    """The matched operations wait for each other in a circle."""


@dataclass(frozen=True, slots=True)
class Step:
    """Collectives that can be computed at once (`operations` sorted by them, `first` where each begins), or joins."""

    collectives: Int64s
    operations: Int64s
    first: Int64s
    joins: Int64s


@dataclass(frozen=True, slots=True)
class Layout:
    """All ranks' operations (N), marks and joins in one numbering, rank after rank, in each rank's chain order."""

    rank: Int64s  # (N,): position of the rank in Matched.ranks
    position: Int64s  # (N,): number of the operation on its rank
    collective: Int64s  # (N,): those without a match have one of their own
    previous: Int64s  # (N,): the operation before it on the same stream or thread, -1
    join_before: Int64s  # (N,): the last join before its launch, -1: none
    mark_rank: Int64s
    mark_operation: Int64s
    mark_joins: Bools
    join_mark: Int64s  # (J,): the mark of each join
    join_previous: Int64s  # (J,): the join before it on its rank, -1
    operation_mark: Int64s  # (N,)
    collectives: int


def lay_out(matched: Matched, demoted: Bools | None = None) -> Layout:
    """`demoted`, shape (N,): operations whose joins are left out."""
    columns: dict[str, list[Int64s]] = {name: [] for name in ("rank", "position", "collective", "previous")}
    mark_rank, mark_operation, mark_joins = [], [], []
    operations = collectives = 0
    collectives = matched.count
    for number, one in enumerate(matched.ranks):
        inside = np.flatnonzero(matched.iteration[number] >= 0)
        first, stop = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
        count = stop - first
        collective = matched.collective[number][first:stop].copy()
        alone = np.flatnonzero(collective < 0)
        collective[alone] = collectives + np.arange(len(alone))
        collectives += len(alone)
        columns["rank"].append(np.full(count, number, np.int64))
        columns["position"].append(np.arange(first, stop))
        columns["collective"].append(collective)
        columns["previous"].append(
            _previous(one.columns.place[first:stop].astype(np.int64), one.columns.start_ns[first:stop], operations)
        )
        marks = one.columns
        kept = (marks.mark_operation >= first) & (marks.mark_operation < stop)
        mark_rank.append(np.full(int(kept.sum()), number, np.int64))
        mark_operation.append(marks.mark_operation[kept].astype(np.int64) - first + operations)
        mark_joins.append(marks.mark_joins[kept])
        operations += count
    rank, position, collective, previous = (np.concatenate(columns[name]) for name in columns)
    of_rank, operation, joins = np.concatenate(mark_rank), np.concatenate(mark_operation), np.concatenate(mark_joins)
    if demoted is not None:
        keep = ~(joins & demoted[operation])
        of_rank, operation, joins = of_rank[keep], operation[keep], joins[keep]
    join_mark = np.flatnonzero(joins)
    join_number = np.cumsum(joins) - 1
    rank_first_join = np.searchsorted(of_rank[join_mark], np.arange(len(matched.ranks)))
    operation_mark = np.zeros(operations, np.int64)
    operation_mark[operation[~joins]] = np.flatnonzero(~joins)
    before = join_number[operation_mark]
    join_before = np.where(before >= rank_first_join[rank], before, -1)
    numbers = np.arange(len(join_mark))
    join_previous = np.where(numbers > rank_first_join[of_rank[join_mark]], numbers - 1, -1)
    return Layout(
        rank, position, collective, previous, join_before, of_rank, operation, joins, join_mark, join_previous,
        operation_mark, collectives,
    )  # fmt: skip


def _previous(place: Int64s, start_ns: Int64s, offset: int) -> Int64s:
    order = np.lexsort((start_ns, place))
    previous = np.full(len(place), -1, np.int64)
    same = place[order][1:] == place[order][:-1]
    # Launched later and begun earlier is no order to wait in.
    later = order[1:] > order[:-1]
    previous[order[1:][same & later]] = order[:-1][same & later] + offset
    return previous


def plan(matched: Matched) -> tuple[Layout, list[Step]]:
    """Raises Circular."""
    layout = lay_out(matched)
    steps = _order(layout)
    if steps is None:
        kinds = np.concatenate([one.columns.kind for one in matched.ranks]) if matched.ranks else np.zeros(0, np.int8)
        starts = np.cumsum([0, *(len(one) for one in matched.ranks)])
        pairwise = np.isin(kinds[starts[layout.rank] + layout.position], _PAIRWISE)
        layout = lay_out(matched, pairwise)
        steps = _order(layout)
    if steps is None:
        raise Circular
    return layout, steps


def _order(layout: Layout) -> list[Step] | None:
    """Walks every rank's marks until all have passed; None when they stop before that."""
    operations = len(layout.rank)
    ranks = int(layout.rank.max()) + 1 if operations else 0
    collective = layout.collective.tolist()
    previous = layout.previous.tolist()
    following = [-1] * operations
    for operation, before in enumerate(previous):
        if before >= 0:
            following[before] = operation
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
    join_level = [0] * len(layout.join_mark)
    join_of_mark = (np.cumsum(layout.mark_joins) - 1).tolist()
    work = list(range(ranks))
    resolved = 0

    def make_ready(operation: int, at: int) -> None:
        nonlocal resolved
        stack = [(operation, at)]
        while stack:
            one, reached = stack.pop()
            number = collective[one]
            needed[number] = max(needed[number], reached)
            missing[number] -= 1
            if missing[number]:
                continue
            level[number] = needed[number] + 1
            resolved += 1
            for member in members[number]:
                work.append(rank_of[member])
                after = following[member]
                if after >= 0 and passed[after] >= 0:
                    stack.append((after, max(passed[after], level[number])))

    while work:
        rank = work.pop()
        while pointer[rank] < bounds[rank + 1]:
            mark = pointer[rank]
            operation = mark_operation[mark]
            if mark_joins[mark]:
                if level[collective[operation]] < 0:
                    break
                rank_level[rank] = max(rank_level[rank], level[collective[operation]])
                join_level[join_of_mark[mark]] = rank_level[rank]
                pointer[rank] += 1
                continue
            pointer[rank] += 1
            passed[operation] = rank_level[rank]
            before = previous[operation]
            if before < 0 or level[collective[before]] >= 0:
                make_ready(operation, max(rank_level[rank], -1 if before < 0 else level[collective[before]]))
    if resolved < layout.collectives:
        return None
    return _steps(layout, np.array(level), np.array(join_level, np.int64))


def _steps(layout: Layout, level: Int64s, join_level: Int64s) -> list[Step]:
    by_collective = np.lexsort((layout.collective, level[layout.collective]))
    sorted_collectives = layout.collective[by_collective]
    sorted_levels = level[sorted_collectives]
    # Joins of one rank and level follow each other: the n-th of them all at once.
    rank = layout.mark_rank[layout.join_mark]
    begins = np.ones(len(rank), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (join_level[1:] != join_level[:-1])
    numbers = np.arange(len(rank))
    turn = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    join_order = np.lexsort((turn, join_level))
    steps: list[Step] = []
    none = np.zeros(0, np.int64)
    turns, levels = turn[join_order], join_level[join_order]
    join_cuts = np.flatnonzero(np.diff(turns, prepend=-1) | np.diff(levels, prepend=-1)) if len(turns) else none
    joins_at: dict[int, list[Int64s]] = {}
    for begin, end in zip(join_cuts, [*join_cuts[1:], len(join_order)], strict=True):
        joins_at.setdefault(int(levels[begin]), []).append(join_order[begin:end])
    cuts = np.flatnonzero(np.diff(sorted_levels, prepend=-1))
    for begin, end in zip(cuts, [*cuts[1:], len(sorted_levels)], strict=True):
        here = sorted_collectives[begin:end]
        first = np.flatnonzero(np.diff(here, prepend=-1))
        steps.append(Step(here[first], by_collective[begin:end], first, none))
        steps += [Step(none, none, none, joins) for joins in joins_at.get(int(sorted_levels[begin]), [])]
    return steps
