"""Replays the matched operations of all ranks under changed times: what if this rank had been as fast as its peers?

Max-plus: an operation begins when its last member has come and what it stands behind has ended, and ends its transfer
later; a chain of local work goes on when its own work is done, its host has launched it, and what it joins has ended.
The transfer is the shortest duration over the members: who came last waited for nobody. Guarantees: pure; no
difference of two clocks enters; several scenarios are computed at once.
"""

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.course import (
    HALF_NEVER,
    Course,
    ReplayOutcome,
    Scenario,
    compute,
    hosts_alone,
    measure_fidelity,
    measure_pace,
    sum_own_times,
)
from fleetprof_analyzer.job.stragglers.replay.entry import find_entries, find_waits
from fleetprof_analyzer.job.stragglers.replay.graph.order import Step, Stuck, order
from fleetprof_analyzer.job.stragglers.replay.graph.plan import plan
from fleetprof_analyzer.job.stragglers.replay.graph.transfers import measure_transfers
from fleetprof_analyzer.job.stragglers.replay.joins import place_joins
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.job.stragglers.replay.passing import bound_first_lags, share_passing
from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout, gather_rows, pick_marks, sum_marks
from fleetprof_analyzer.job.stragglers.replay.strays import find_strays
from fleetprof_analyzer.job.stragglers.thresholds import HALF
from fleetprof_analyzer.rank.communication.chain.chain import next_owner
from fleetprof_analyzer.rank.communication.chain.host_chain import NEVER
from fleetprof_analyzer.rank.communication.chain.program import position_in_program
from fleetprof_analyzer.trace.trace import Bools, Int64s

_PARTS: Final = ("segment", "busy", "data", "collection", "pause", "quiet")


class Replay:
    """The graph of one match, ready for scenarios. Raises Circular.

    `follows_hosts`: hosts go on beside their devices where they can; else all gaps of a device are its own time.
    """

    def __init__(self, matched: Matched, *, follows_hosts: bool = True) -> None:
        self.matched, self._follows_hosts = matched, follows_hosts
        self.played = matched.played or matched
        captured = len(matched.ranks)
        self.like = self.played.like if matched.played else np.arange(captured)
        self.layout, self._steps = plan(self.played)
        layout = self.layout
        self.is_captured = layout.rank < captured
        self.duration_ns = self.gather("duration_ns")
        self.start_ns = self.gather("start_ns")
        self.parts_ns = {name: self.gather(f"{name}_ns") for name in _PARTS}
        self.segment_ns = self.parts_ns["segment"]
        self.iteration = gather_rows(self.played.iteration, layout)
        self.strays = find_strays(self.played)
        self.is_stray = gather_rows(self.strays, layout).astype(np.bool_)
        self.has_host = self._with_hosts()
        with_host = (self.has_host | self._unfollowed)[layout.rank]
        self.lag_ns = np.where(with_host, self.gather("lag_ns"), self.gather("late_ns"))
        self._after_local = self.gather("after_local").astype(np.bool_)
        self.program_position = self._positions()
        self._share_what_passes()
        self._times_of_marks()
        self._complete_first()
        described = self.gather("kind"), self.gather("elements")
        whole = self.played.whole if matched.played else np.ones(matched.count, np.bool_)
        self.transfer_ns = measure_transfers(layout, self.duration_ns, self.is_captured, whole, described)
        self._add_up()
        self.ahead_ns = np.zeros(len(self.like), np.int64)
        self._explain()
        self.ahead_ns = self._find_waits()

    def gather(self, column: str) -> Int64s:
        """A column of `Columns`, one value per operation of the layout, shape (N,)."""
        return gather_rows([getattr(one.columns, column) for one in self.played.ranks], self.layout)

    def _positions(self) -> Int64s:
        """Each operation's place in its rank's program, shape (N,), -1 where its iteration differs, and of strays."""
        of_ranks = [
            position_in_program(
                np.where(stray, -1, numbers).astype(np.int32), one.columns.kind, len(self.matched.iterations)
            )
            for one, numbers, stray in zip(self.played.ranks, self.played.iteration, self.strays, strict=True)
        ]
        return gather_rows(of_ranks, self.layout)

    def _share_what_passes(self) -> None:
        """Leaves operations that pass the chain no segment but their lag."""
        rank, passing = self.layout.rank, ~self._after_local
        lag = bound_first_lags(self.layout, self.iteration, self.program_position, passing, self.lag_ns)
        self.segment_ns = np.where(lag < self.lag_ns, np.minimum(self.segment_ns, lag), self.segment_ns)
        self.lag_ns = lag
        position = np.where(self.iteration >= 0, self.program_position, -1)
        shared = share_passing(rank, position, self.gather("kind"), passing) & ~passing & self.has_host[rank]
        self._after_local &= ~shared
        self.segment_ns = self.parts_ns["segment"] = np.where(shared, self.lag_ns, self.segment_ns)
        self.parts_ns["busy"] = np.where(shared, 0, self.parts_ns["busy"])

    def _with_hosts(self) -> Bools:
        """The ranks whose hosts are followed, shape (R,): those that lead, and where most do all that say theirs."""
        ranks = self.played.ranks
        follows = np.array([bool((one.columns.tail_work_ns > HALF_NEVER).any()) for one in ranks])
        leads = np.array([one.leads for one in ranks])
        self._unfollowed = leads & (not self._follows_hosts)
        if not self._follows_hosts:
            return np.zeros(len(leads), np.bool_)
        return leads | (follows & bool(follows.any() and leads[follows].mean() >= HALF))

    def _times_of_marks(self) -> None:
        """The marks' times, the owner of each; of a mark that was left out they belong to the next one."""
        layout, ranks = self.layout, self.played.ranks
        own, self._work_ns, self._host_ns = (
            sum_marks(ranks, layout, name) for name in ("own_ns", "work_ns", "host_ns")
        )
        self._tail_host_ns, self._tail_work_ns, lead = (
            pick_marks(ranks, layout, name) for name in ("tail_host_ns", "tail_work_ns", "lead_ns")
        )
        alone, busy = ~self.has_host[layout.mark_rank], self._work_ns.copy()
        self._work_ns[alone], self._host_ns[alone], self._tail_work_ns[alone] = own[alone], 0, NEVER
        first = np.flatnonzero(np.diff(layout.mark_rank, prepend=-1))
        # Where the window begins both are where they were.
        self._host_ns[first] = np.where(alone[first], 0, self._work_ns[first] + lead[first])
        self._tail_work_ns[first] = NEVER
        passed = layout.mark_stops
        self._owner = self._owners(passed | ~self._after_local[layout.mark_operation])
        self._host_owner = self._owners(passed)
        self._add_gaps(busy)

    def _add_gaps(self, busy_ns: Int64s) -> None:
        """Adds the device's gaps, of hosts that could be followed and are not, before each operation's launch.

        `busy_ns`, shape (M,): the marks' work without gaps.
        """
        layout, count = self.layout, len(self.layout.rank)
        mine = self._unfollowed[layout.mark_rank]
        total = np.bincount(self._owner[mine], busy_ns[mine], count + 1)[:-1].astype(np.int64)
        here = np.flatnonzero(self._unfollowed[layout.rank] & self._after_local)
        self._work_ns[mine] = busy_ns[mine]
        self._work_ns[layout.operation_mark[here]] += np.maximum(self.segment_ns - total, 0)[here]
        self.parts_ns["busy"][here] = np.minimum(total, self.segment_ns)[here]

    def _owners(self, passed: Bools) -> Int64s:
        """The operation whose segment a mark belongs to; N where there is none on its rank."""
        layout, count = self.layout, len(self.layout.rank)
        owner = next_owner(layout.mark_operation, passed, count)
        same = layout.rank[np.minimum(owner, count - 1)] == layout.mark_rank
        return np.where(same, owner, count)

    def _add_up(self) -> None:
        """The operations' own work and host's time, shape (N,): what a what-if changes."""
        count = len(self.layout.rank)
        self.work_ns, self.host_ns = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        np.add.at(self.work_ns, self._owner, self._work_ns)
        np.add.at(self.host_ns, self._host_owner, self._host_ns)
        self.work_ns, self.host_ns = self.work_ns[:-1], self.host_ns[:-1]
        alone = ~self.has_host[self.layout.rank]
        self.work_ns[alone], self.host_ns[alone] = self.segment_ns[alone], 0
        self.host_parts_ns = {name: np.where(alone, 0, self.parts_ns[name]) for name in ("data", "collection")}
        self._beside_ns = self.parts_ns["data"] + self.parts_ns["collection"]

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
            more = int(self.segment_ns[first]) - before
            self._work_ns[layout.operation_mark[first]] += more
            self._host_ns[layout.operation_mark[first]] += more

    def _find_waits(self) -> Int64s:
        course = self._course(self.layout, self._steps, [self.as_measured()])
        times = self.lag_ns, self.transfer_ns, self.duration_ns
        return find_waits(self.layout, course, *times, self._after_local, self.has_host)

    def _explain(self) -> None:
        """Own times without the lead of hosts that waited, and what filled them: the gaps' data loading goes first."""
        parts = self.parts_ns
        self.segment_ns = parts["segment"] = self._own_times()
        mine = self.has_host[self.layout.rank] & self._after_local
        parts["busy"] = np.where(mine, np.minimum(self.work_ns, self.segment_ns), parts["busy"])
        mine |= self._unfollowed[self.layout.rank] & self._after_local
        gap = self.segment_ns - parts["busy"]
        for name in ("data", "collection"):
            parts[name] = np.where(mine, np.minimum(gap, parts[name]), parts[name])
            gap = gap - parts[name]

    def as_measured(self) -> Scenario:
        """The scenario of the traces themselves."""
        return self.with_times(self.work_ns, self.host_ns, np.zeros(len(self.work_ns), np.bool_))

    def placed_like(self, rank: int, peers: Int64s) -> Int64s:
        """The marks' work, shape (M,), with the rank's joins where its peers have them: for `with_times`."""
        places = self.iteration, self.program_position
        return place_joins(self.layout, self._work_ns, self._owner, places, rank, peers)

    def with_times(
        self, work_ns: Int64s, host_ns: Int64s, changed: Bools, most_lag_ns: Int64s | None = None,
        marks_work_ns: Int64s | None = None,
    ) -> Scenario:  # fmt: skip
        """The own times of the operations `changed`, shape (N,), set to these: their marks and lags in proportion.

        Lags do not pass `most_lag_ns`. `marks_work_ns`, shape (M,), places joins elsewhere (`placed_like`).
        """
        layout, of_marks = self.layout, self._work_ns if marks_work_ns is None else marks_work_ns
        work_factor, host_factor = (
            np.append(np.where(changed & (was > 0), wanted / np.maximum(was, 1), 1.0), 1.0)
            for was, wanted in ((self.work_ns, work_ns), (self.host_ns, host_ns))
        )
        launching, wanted = self.host_ns - self._beside_ns, host_ns - self._beside_ns
        pace = measure_pace(layout, launching, wanted, changed, len(self.has_host))
        factor = work_factor[self._owner]
        has_tail = self._tail_work_ns > HALF_NEVER
        work, tail_work = (
            np.rint(times * factor).astype(np.int64) for times in (of_marks, np.where(has_tail, self._tail_work_ns, 0))
        )
        host, tail_host = (
            np.rint(times * factor).astype(np.int64)
            for times, factor in (
                (self._host_ns, host_factor[self._host_owner]),
                (self._tail_host_ns, pace[layout.mark_rank]),
            )
        )
        lag, most = np.rint(self.lag_ns * work_factor[:-1]).astype(np.int64), most_lag_ns
        lag = lag if most is None else np.where(changed, np.minimum(lag, most), lag)
        for was, wanted, marks in ((self.work_ns, work_ns, work), (self.host_ns, host_ns, host)):
            empty = np.flatnonzero(changed & (was == 0) & (wanted > 0))
            marks[layout.operation_mark[empty]] += wanted[empty]
        tail = np.where(has_tail, tail_work - tail_host, NEVER)
        return Scenario(work, host, tail, lag, self.transfer_ns)

    def run(self, scenarios: list[Scenario], *, goes_on: bool = False) -> ReplayOutcome:
        """All scenarios at once. `goes_on`: ranks enter the window as they enter its other iterations."""
        layout = self.layout
        course = self._course(layout, self._steps, scenarios)
        if goes_on:
            entry = find_entries(layout, course, self.iteration, len(self.has_host))
            if entry.any():
                course = self._course(layout, self._steps, scenarios, entry)
        blocked = np.zeros((len(self.like), len(scenarios)), np.int64)
        np.add.at(blocked, layout.mark_rank[layout.stop_mark], course.stood)
        hosts = hosts_alone(layout, course, self.iteration, len(self.matched.iterations), self.has_host)
        return ReplayOutcome(course.ends.max(axis=0, initial=0), blocked, hosts)

    def follow(self, scenarios: list[Scenario]) -> Course:
        """The whole course of all scenarios at once, whose ranks enter the window together."""
        return self._course(self.layout, self._steps, scenarios)

    @cached_property
    def _fidelity(self) -> float:
        measured = self._course(self.layout, self._steps, [self.as_measured()])
        return measure_fidelity(self.layout, measured, self.start_ns + self.duration_ns)

    def fidelity(self) -> float:
        """Replayed length of the window over the measured one."""
        return self._fidelity

    def _course(
        self, layout: ReplayLayout, steps: list[Step], scenarios: list[Scenario], entry_ns: Int64s | None = None
    ) -> Course:
        after_local, has_host = self._after_local, self.has_host
        return compute(
            layout, steps, scenarios, after_local=after_local, has_host=has_host, entry_ns=entry_ns,
            ahead_ns=self.ahead_ns,
        )  # fmt: skip

    def _own_times(self) -> Int64s:
        """The chain's own time since the operation before, shape (N,), had no rank waited for another.

        As measured it would hold the gaps of a host that has no lead, and hide those of one that gained it by waiting.
        """
        layout, count = self.layout, len(self.layout.rank)
        alone = replace(layout, collective=np.arange(count), collectives=count)
        steps = order(alone)
        assert not isinstance(steps, Stuck)
        measured = self.as_measured()
        course = self._course(alone, steps, [replace(measured, transfer_ns=self.transfer_ns[layout.collective])])
        own = sum_own_times(layout, course, measured.work_ns, self._owner, self.transfer_ns)
        return np.where(self.has_host[layout.rank] & self._after_local, own, self.segment_ns)
