"""All ranks' matched operations, marks and stops in one numbering: the graph that a replay goes through.

Guarantees: pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

_COLUMNS: Final = ("rank", "position", "collective", "part", "previous", "behind")


@dataclass(frozen=True, slots=True)
class ReplayLayout:
    """All ranks' operations (N), marks and stops in one numbering, rank after rank, in each rank's chain order."""

    rank: Int64s  # (N,): position of the rank in Matched.ranks
    position: Int64s  # (N,): number of the operation on its rank
    collective: Int64s  # (N,): those without a match have one of their own
    part: Int64s  # (N,): the how-manieth of its batch, from 0; parts of a batch begin together and follow each other
    previous: Int64s  # (N,): the operation before it on the same stream or thread, -1
    beside_previous: tuple[Int64s, ...]  # (N,) each: another part of the batch that `previous` is part of, -1
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

    @property
    def earlier(self) -> tuple[Int64s, ...]:
        """Operations that must have ended before each one begins, shape (N,) each, -1: none."""
        return (self.previous, self.behind, *self.beside_previous)


def lay_out(matched: Matched, demoted: Bools | None = None) -> ReplayLayout:
    """`demoted`, shape (N,): operations whose joins are left out."""
    columns: dict[str, list[Int64s]] = {name: [] for name in _COLUMNS}
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
        places, starts = one.columns.place[first:stop].astype(np.int64), one.columns.start_ns[first:stop]
        columns["part"].append(_parts(places, starts))
        columns["previous"].append(_previous(places, starts, columns["part"][-1], operations))
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
    rank, position, collective, part, previous, behind = (np.concatenate(columns[name]) for name in _COLUMNS)
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
        rank, position, collective, part, previous, _beside(previous, part), behind, stop_before,
        of_rank, operation, joins, waits, stops, origin, stop_mark, stop_previous,
        _awaited(of_rank, origin, awaits, stop_mark), operation_mark, collectives,
    )  # fmt: skip


def _awaited(rank: Int64s, origin: Int64s, awaits: Int64s, stop_mark: Int64s) -> Int64s:
    """The stop at which the chain must be, for each stop; -1 where that is not among them."""
    size = int(origin.max(initial=0)) + 1
    number = rank * size + origin
    wanted = (number - np.maximum(awaits, 0))[stop_mark]
    at = np.minimum(np.searchsorted(number[stop_mark], wanted), len(wanted) - 1)
    return np.where(number[stop_mark][at] == wanted, at, -1)


def _parts(place: Int64s, start_ns: Int64s) -> Int64s:
    """The how-manieth part of its batch each operation is, from 0: parts follow each other and begin together."""
    numbers = np.arange(len(place))
    begins = np.ones(len(place), np.bool_)
    begins[1:] = (place[1:] != place[:-1]) | (start_ns[1:] != start_ns[:-1])
    return numbers - np.maximum.accumulate(np.where(begins, numbers, 0))


def _previous(place: Int64s, start_ns: Int64s, part: Int64s, offset: int) -> Int64s:
    """The last part of what is before on the same place: the same for all parts of a batch."""
    order = np.lexsort((start_ns, place))
    previous = np.full(len(place), -1, np.int64)
    before = np.arange(len(place)) - part[order] - 1
    known = before >= 0
    earlier = order[np.maximum(before, 0)]
    # Launched later and begun earlier is no order to wait in.
    known &= (place[earlier] == place[order]) & (order > earlier)
    previous[order[known]] = earlier[known] + offset
    return previous


def _beside(previous: Int64s, part: Int64s) -> tuple[Int64s, ...]:
    """The further parts of the batches whose last part is `previous`."""
    parts = np.where(previous >= 0, part[previous], 0)
    return tuple(np.where(parts >= back, previous - back, -1) for back in range(1, int(parts.max(initial=0)) + 1))


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
