"""Orders matched operations so that each comes after all that it waits for (docs/measures.md#stragglers).

Nodes are collectives and stops (where a rank's chain waits for an operation, or its host for the chain). Guarantees:
every step needs only results of earlier steps; waiting in a circle, which a real job cannot do, is resolved by letting
sends and receives go, or said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS, RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

# A send ends when its receiver takes it, often while its own chain waits for something else: it seems to hold that up.
_DEMOTED: Final = (
    (KINDS.index("send"),),
    (KINDS.index("send"), KINDS.index("receive"), KINDS.index("send_receive")),
)


class Circular(Exception):
    """The matched operations wait for each other in a circle."""


@dataclass(frozen=True, slots=True)
class Step:
    """Collectives that can be computed at once (`operations` sorted by them, `first` where each begins), or stops."""

    collectives: Int64s
    operations: Int64s
    first: Int64s
    stops: Int64s


@dataclass(frozen=True, slots=True)
class ReplayLayout:
    """All ranks' operations (N), marks and stops in one numbering, rank after rank, in each rank's chain order."""

    rank: Int64s  # (N,): position of the rank in Matched.ranks
    position: Int64s  # (N,): number of the operation on its rank
    collective: Int64s  # (N,): those without a match have one of their own
    previous: Int64s  # (N,): the operation before it on the same stream or thread, -1
    behind: Int64s  # (N,): the operation of another stream that it begins behind, -1
    stop_before: Int64s  # (N,): the last stop before its launch, -1: none
    mark_rank: Int64s
    mark_operation: Int64s
    mark_joins: Bools
    mark_waits: Bools
    mark_stops: Bools  # joins, waits, and ends of what is waited for: where chain or host may stand still or are asked
    mark_origin: Int64s  # its number in the rank's columns
    stop_mark: Int64s  # (J,): the mark of each stop
    stop_previous: Int64s  # (J,): the stop before it on its rank, -1
    stop_awaits: Int64s  # (J,): the stop at which the chain must be for the host to go on: itself, if it waits for all
    operation_mark: Int64s  # (N,)
    collectives: int


def lay_out(matched: Matched, demoted: Bools | None = None) -> ReplayLayout:
    """`demoted`, shape (N,): operations whose joins are left out."""
    columns: dict[str, list[Int64s]] = {name: [] for name in ("rank", "position", "collective", "previous", "behind")}
    mark_rank, mark_operation, mark_joins, mark_waits, mark_awaits, mark_origin = [], [], [], [], [], []
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
        behind = one.columns.behind[first:stop]
        columns["behind"].append(np.where(behind >= first, behind - first + operations, -1))
        marks = one.columns
        kept = (marks.mark_operation >= first) & (marks.mark_operation < stop)
        mark_rank.append(np.full(int(kept.sum()), number, np.int64))
        mark_operation.append(marks.mark_operation[kept].astype(np.int64) - first + operations)
        mark_joins.append(marks.mark_joins[kept])
        mark_waits.append(marks.mark_waits[kept])
        mark_awaits.append(marks.mark_awaits[kept].astype(np.int64))
        mark_origin.append(np.flatnonzero(kept))
        operations += count
    rank, position, collective, previous, behind = (np.concatenate(columns[name]) for name in columns)
    of_rank, operation, joins = np.concatenate(mark_rank), np.concatenate(mark_operation), np.concatenate(mark_joins)
    waits, origin = np.concatenate(mark_waits), np.concatenate(mark_origin)
    awaits = np.concatenate(mark_awaits)
    if demoted is not None:
        keep = ~(joins & demoted[operation])
        of_rank, operation, origin = of_rank[keep], operation[keep], origin[keep]
        joins, waits, awaits = joins[keep], waits[keep], awaits[keep]
    stops = joins | waits | (awaits < 0)
    stop_mark = np.flatnonzero(stops)
    stop_number = np.cumsum(stops) - 1
    rank_first_stop = np.searchsorted(of_rank[stop_mark], np.arange(len(matched.ranks)))
    operation_mark = np.zeros(operations, np.int64)
    operation_mark[operation[~stops]] = np.flatnonzero(~stops)
    before = stop_number[operation_mark]
    stop_before = np.where(before >= rank_first_stop[rank], before, -1)
    numbers = np.arange(len(stop_mark))
    stop_previous = np.where(numbers > rank_first_stop[of_rank[stop_mark]], numbers - 1, -1)
    return ReplayLayout(
        rank, position, collective, previous, behind, stop_before, of_rank, operation, joins, waits, stops, origin,
        stop_mark, stop_previous, _awaited(of_rank, origin, awaits, stop_mark), operation_mark, collectives,
    )  # fmt: skip


def _awaited(rank: Int64s, origin: Int64s, awaits: Int64s, stop_mark: Int64s) -> Int64s:
    """The stop at which the chain must be, for each stop; -1 where that is not among them."""
    size = int(origin.max(initial=0)) + 1
    number = rank * size + origin
    wanted = (number - np.maximum(awaits, 0))[stop_mark]
    at = np.minimum(np.searchsorted(number[stop_mark], wanted), len(wanted) - 1)
    return np.where(number[stop_mark][at] == wanted, at, -1)


def _previous(place: Int64s, start_ns: Int64s, offset: int) -> Int64s:
    order = np.lexsort((start_ns, place))
    previous = np.full(len(place), -1, np.int64)
    same = place[order][1:] == place[order][:-1]
    # Launched later and begun earlier is no order to wait in.
    later = order[1:] > order[:-1]
    previous[order[1:][same & later]] = order[:-1][same & later] + offset
    return previous


def plan(matched: Matched) -> tuple[ReplayLayout, list[Step]]:
    """Raises Circular."""
    layout = lay_out(matched)
    steps = order(layout)
    kinds = np.concatenate([one.columns.kind for one in matched.ranks]) if matched.ranks else np.zeros(0, np.int8)
    starts = np.cumsum([0, *(len(one) for one in matched.ranks)])
    kind = kinds[starts[layout.rank] + layout.position]
    for demoted in _DEMOTED:
        if steps is not None:
            break
        layout = lay_out(matched, np.isin(kind, demoted))
        steps = order(layout)
    if steps is None:
        raise Circular
    return layout, steps


def order(layout: ReplayLayout) -> list[Step] | None:
    """Walks every rank's marks until all have passed; None when they stop before that."""
    operations = len(layout.rank)
    ranks = int(layout.rank.max()) + 1 if operations else 0
    collective = layout.collective.tolist()
    before = [
        [one for one in both if one >= 0] for both in zip(layout.previous.tolist(), layout.behind.tolist(), strict=True)
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
        return None
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


def gather_rows(of_ranks: Sequence[npt.NDArray[np.generic]], layout: ReplayLayout) -> Int64s:
    """One value per operation of the layout."""
    starts = np.cumsum([0, *(len(values) for values in of_ranks)])
    together = np.concatenate(of_ranks).astype(np.int64)
    return np.asarray(together[starts[layout.rank] + layout.position])


def pick_marks(ranks: Sequence[RankOperations], layout: ReplayLayout, name: str) -> Int64s:
    """A column of the marks, one value per mark of the layout."""
    found = np.zeros(len(layout.mark_rank), np.int64)
    for number, one in enumerate(ranks):
        here = layout.mark_rank == number
        found[here] = getattr(one.columns, name)[layout.mark_origin[here]]
    return found


def sum_marks(ranks: Sequence[RankOperations], layout: ReplayLayout, name: str) -> Int64s:
    """The same, with the values of the marks that were left out since the one before."""
    found = np.zeros(len(layout.mark_rank), np.int64)
    for number, one in enumerate(ranks):
        here = np.flatnonzero(layout.mark_rank == number)
        at = layout.mark_origin[here]
        total = np.concatenate(([0], np.cumsum(getattr(one.columns, name))))
        found[here] = total[at + 1] - total[np.concatenate((at[:1], at[:-1] + 1))]
    return found
