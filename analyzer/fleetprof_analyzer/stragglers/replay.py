"""Replays the matched operations of all ranks under changed times: what if this rank had been as fast as its peers?

Max-plus: an operation begins when its last member has come, and ends its transfer later; a chain of local work goes
on when its own work is done and what it joins has ended. The transfer is the shortest duration over the members: who
came last waited for nobody. Guarantees: pure; no difference of two clocks enters; several scenarios are computed at
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.communication.chain import next_owner
from fleetprof_analyzer.communication.program import position_in_program
from fleetprof_analyzer.stragglers.matching import Matched
from fleetprof_analyzer.stragglers.schedule import Layout, plan
from fleetprof_analyzer.trace import Bools, Int64s

_PARTS: Final = ("segment", "busy", "data", "collection", "pause", "quiet")
_NEVER: Final = np.iinfo(np.int64).min // 2


@dataclass(frozen=True, slots=True)
class Scenario:
    """Times of one what-if: of marks, operations' lags, and collectives' transfers; the shapes are Replay's."""

    own_ns: Int64s
    lag_ns: Int64s
    transfer_ns: Int64s


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of S scenarios: the window's length, shape (S,), and how long each rank's chain stood still, shape (R, S)."""

    total_ns: Int64s
    blocked_ns: Int64s


class Replay:
    """The graph of one match, ready for scenarios. Raises Circular."""

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        self.layout, self._steps = plan(matched)
        layout = self.layout
        self.duration_ns = self.gather("duration_ns")
        self.start_ns = self.gather("start_ns")
        self.parts_ns = {name: self.gather(f"{name}_ns") for name in _PARTS}
        self.segment_ns = self.parts_ns["segment"]
        self.iteration = _gather(matched.iteration, layout)
        self.lag_ns = self.gather("lag_ns")
        self._after_local = self.gather("after_local").astype(np.bool_)
        self.own_ns = _gather_marks(matched, layout)
        self.program_position = self._positions()
        self._complete_first()
        self.transfer_ns = np.full(layout.collectives, np.iinfo(np.int64).max, np.int64)
        np.minimum.at(self.transfer_ns, layout.collective, self.duration_ns)

    def gather(self, column: str) -> Int64s:
        """A column of `Columns`, one value per operation of the layout, shape (N,)."""
        return _gather([getattr(one.columns, column) for one in self.matched.ranks], self.layout)

    def _positions(self) -> Int64s:
        """Each operation's place in its rank's program, shape (N,), -1 where its iteration differs."""
        of_ranks = [
            position_in_program(numbers.astype(np.int32), one.columns.kind, len(self.matched.iterations))
            for one, numbers in zip(self.matched.ranks, self.matched.iteration, strict=True)
        ]
        return _gather(of_ranks, self.layout)

    def _complete_first(self) -> None:
        """The window's edge hides a rank's first segment: it is taken as long as in the rank's other iterations.

        In proportion to the rest of its iteration, so that a fault of the others is not carried into it.
        """
        layout, position = self.layout, self.program_position
        for first in np.flatnonzero(layout.position == 0):
            mine = (layout.rank == layout.rank[first]) & (position >= 0) & (self.iteration >= 0)
            same = mine & (position == position[first])
            same[first] = False
            if position[first] < 0 or not same.any():
                continue
            rest = mine & (position != position[first])
            of_iterations = np.bincount(self.iteration[rest], self.segment_ns[rest], len(self.matched.iterations))
            others = float(np.median(np.delete(of_iterations, self.iteration[first])))
            share = float(np.clip(of_iterations[self.iteration[first]] / others, 0.5, 2.0)) if others > 0 else 1.0
            before = int(self.segment_ns[first])
            for values in self.parts_ns.values():
                values[first] = max(round(share * float(np.median(values[same]))), int(values[first]))
            self.own_ns[layout.operation_mark[first]] += int(self.segment_ns[first]) - before

    def as_measured(self) -> Scenario:
        """The scenario of the traces themselves."""
        return Scenario(self.own_ns, self.lag_ns, self.transfer_ns)

    def with_segments(self, segment_ns: Int64s, changed: Bools, most_lag_ns: Int64s | None = None) -> Scenario:
        """Segments of the operations `changed`, shape (N,), set to `segment_ns`: their marks and lags in proportion.

        Lags do not pass `most_lag_ns`.
        """
        layout = self.layout
        owner = self._mark_owner()
        known = owner < len(changed)
        factor = np.ones(len(changed))
        has = changed & (self.segment_ns > 0)
        factor[has] = segment_ns[has] / self.segment_ns[has]
        own = self.own_ns.copy()
        touched = known & changed[np.minimum(owner, len(changed) - 1)]
        own[touched] = np.rint(own[touched] * factor[owner[touched]]).astype(np.int64)
        lag = np.where(has, np.rint(self.lag_ns * factor).astype(np.int64), self.lag_ns)
        if most_lag_ns is not None:
            lag = np.where(changed, np.minimum(lag, most_lag_ns), lag)
        empty = np.flatnonzero(changed & (self.segment_ns == 0) & (segment_ns > 0))
        own[layout.operation_mark[empty]] += segment_ns[empty]
        return Scenario(own, lag, self.transfer_ns)

    def _mark_owner(self) -> Int64s:
        """The operation whose segment a mark belongs to; N where there is none on its rank."""
        layout, count = self.layout, len(self.layout.rank)
        passed = layout.mark_joins | ~self._after_local[layout.mark_operation]
        owner = next_owner(layout.mark_operation, passed, count)
        same = layout.rank[np.minimum(owner, count - 1)] == layout.mark_rank
        return np.where(same, owner, count)

    def run(self, scenarios: list[Scenario]) -> Outcome:
        """All scenarios at once."""
        ends, shift = self._compute(scenarios)
        layout = self.layout
        blocked = np.zeros((len(self.matched.ranks), len(scenarios)), np.int64)
        stood = np.maximum(shift[:-1] - shift[layout.join_previous], 0)
        np.add.at(blocked, layout.mark_rank[layout.join_mark], stood)
        return Outcome(ends.max(axis=0, initial=0), blocked)

    def fidelity(self) -> float:
        """Replayed length of the window over the measured one:

        the median over ranks, first to last operation's end.
        """
        layout = self.layout
        end = self.start_ns + self.duration_ns
        replayed = self._compute([self.as_measured()])[0][layout.collective, 0]
        first = np.searchsorted(layout.rank, np.unique(layout.rank))
        last = np.append(first[1:], len(layout.rank)) - 1
        measured = end[last] - end[first]
        some = measured > 0
        return float(np.median((replayed[last] - replayed[first])[some] / measured[some])) if some.any() else 1.0

    def _compute(self, scenarios: list[Scenario]) -> tuple[Int64s, Int64s]:
        """(ends of the collectives, shape (C, S); how much later than its own work each chain is after each join)."""
        layout, count = self.layout, len(scenarios)
        lag = np.stack([scenario.lag_ns for scenario in scenarios], 1)
        transfer = np.stack([scenario.transfer_ns for scenario in scenarios], 1)
        worked = _cumulative(np.stack([scenario.own_ns for scenario in scenarios], 1), layout.mark_rank)
        at_launch, at_join = worked[layout.operation_mark], worked[layout.join_mark]
        joined = layout.collective[layout.mark_operation[layout.join_mark]]
        ends = np.zeros((layout.collectives, count), np.int64)
        # The last row of `shift` stands for "no join yet".
        shift = np.zeros((len(layout.join_mark) + 1, count), np.int64)
        before = np.where(layout.previous >= 0, layout.collective[layout.previous], -1)
        waits_for_chain = self._after_local | (before < 0)
        for step in self._steps:
            if len(step.joins):
                ended = ends[joined[step.joins]] - at_join[step.joins]
                shift[step.joins] = np.maximum(shift[layout.join_previous[step.joins]], ended)
                continue
            here = step.operations
            local = shift[layout.join_before[here]] + at_launch[here]
            local[~waits_for_chain[here]] = _NEVER
            earlier = ends[before[here]]
            earlier[before[here] < 0] = _NEVER
            ready = np.maximum(local, earlier) + lag[here]
            ends[step.collectives] = np.maximum.reduceat(ready, step.first, axis=0) + transfer[step.collectives]
        return ends, shift


def _gather(of_ranks: Sequence[npt.NDArray[np.generic]], layout: Layout) -> Int64s:
    """One value per operation of the layout."""
    starts = np.cumsum([0, *(len(values) for values in of_ranks)])
    together = np.concatenate(of_ranks).astype(np.int64)
    return np.asarray(together[starts[layout.rank] + layout.position])


def _gather_marks(matched: Matched, layout: Layout) -> Int64s:
    """The own time of each mark of the layout; that of marks which were left out belongs to the next one."""
    own = np.zeros(len(layout.mark_rank), np.int64)
    for number, one in enumerate(matched.ranks):
        here = np.flatnonzero(layout.mark_rank == number)
        if len(here) == 0:
            continue
        columns = one.columns
        first_operation = layout.mark_operation[here][~layout.mark_joins[here]].min()
        offset = int(first_operation - layout.position[first_operation])
        keys = 2 * (columns.mark_operation.astype(np.int64) + offset) + columns.mark_joins
        wanted = 2 * layout.mark_operation[here] + layout.mark_joins[here]
        place = {key: index for index, key in enumerate(keys.tolist())}
        at = np.array([place[key] for key in wanted.tolist()], np.int64)
        total = np.concatenate(([0], np.cumsum(columns.own_ns)))
        begin = np.concatenate(([at[0]], at[:-1] + 1))
        own[here] = total[at + 1] - total[begin]
    return own


def _cumulative(own_ns: Int64s, rank: Int64s) -> Int64s:
    """Own time up to and including each mark, per rank, shape (marks, S)."""
    total = np.cumsum(own_ns, axis=0)
    first = np.searchsorted(rank, rank)
    return np.asarray(total - np.where((first > 0)[:, None], total[first - 1], 0))
