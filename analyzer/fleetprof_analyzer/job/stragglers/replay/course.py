"""Carries times through the graph of a replay: when each collective ends, and how late chains and hosts are then.

Guarantees: pure; several scenarios are computed at once, step by step as schedule.py ordered them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.job.stragglers.replay.graph.order import Step
from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.rank.communication.chain.host_chain import NEVER
from fleetprof_analyzer.trace.trace import Bools, Int64s

Floats = npt.NDArray[np.float64]
HALF_NEVER: Final = NEVER // 2
_NEVER: Final = np.iinfo(np.int64).min // 2
_PACE: Final = 0.7  # quantile over the operations


@dataclass(frozen=True, slots=True)
class Scenario:
    """Times of one what-if: of marks, operations' lags, and collectives' transfers; the shapes are Replay's.

    Of the rows before a mark one ends no sooner than `tail_ns` after the host has come to the mark.
    """

    work_ns: Int64s
    host_ns: Int64s
    tail_ns: Int64s
    lag_ns: Int64s
    transfer_ns: Int64s


@dataclass(frozen=True, slots=True)
class Course:
    """The course of S scenarios: `ends` of the collectives, shape (C, S).

    How much later than its own work a chain was when it `arrived` at each stop, shape (J, S), and after it (`shift`,
    whose last R rows are those of ranks that had no stop yet); the same of its host; `held`: by how much the host alone
    delays a mark; `worked` and `hosted`, own times up to each mark.
    """

    ends: Int64s
    shift: Int64s
    host_shift: Int64s
    arrived: Int64s
    held: Int64s
    worked: Int64s
    hosted: Int64s

    @property
    def stood(self) -> Int64s:
        """The time that each chain stood still at each stop, shape (J, S)."""
        return np.asarray(self.shift[: len(self.arrived)] - self.arrived)


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The outcome of S scenarios: the window's length, shape (S,), and the time each chain stood still, shape (R, S).

    `hosts_ns`, shape (S,): what the hosts alone take in as many iterations.
    """

    total_ns: Int64s
    blocked_ns: Int64s
    hosts_ns: Int64s

    @property
    def lasting_ns(self) -> Int64s:
        """The length of a window whose hosts bring no lead along, shape (S,).

        They may have gained one by waiting for another rank, and would have none if that had been faster.
        """
        return np.maximum(self.total_ns, self.hosts_ns)


def compute(
    layout: ReplayLayout, steps: list[Step], scenarios: list[Scenario], *, after_local: Bools, has_host: Bools,
    entry_ns: Int64s | None = None, ahead_ns: Int64s | None = None,
) -> Course:  # fmt: skip
    """The course of all scenarios at once. `after_local`, shape (N,): waits for its chain; `has_host`, shape (R,).

    `entry_ns`, shape (R, S): when each rank enters the window; together if None. `ahead_ns`, shape (R,): how long
    before the last rank its host does at least.
    """
    count, stops = len(scenarios), len(layout.stop_mark)
    lag = np.stack([scenario.lag_ns for scenario in scenarios], 1)
    transfer = np.stack([scenario.transfer_ns for scenario in scenarios], 1)
    worked = _cumulative(np.stack([scenario.work_ns for scenario in scenarios], 1), layout.mark_rank)
    hosted = _cumulative(np.stack([scenario.host_ns for scenario in scenarios], 1), layout.mark_rank)
    # How much the host alone delays each mark, if it is as far as its own work: the most since the last stop.
    held = np.stack([scenario.tail_ns for scenario in scenarios], 1)
    held = np.where(held > HALF_NEVER, held + hosted - worked, _NEVER)
    held = _most_since(held, layout)
    at_launch, at_stop = worked[layout.operation_mark], worked[layout.stop_mark]
    host_at_launch, host_at_stop = hosted[layout.operation_mark], hosted[layout.stop_mark]
    held_at_launch, held_at_stop = held[layout.operation_mark], held[layout.stop_mark]
    joined = layout.collective[layout.mark_operation[layout.stop_mark]]
    joins, waits = layout.mark_joins[layout.stop_mark], layout.mark_waits[layout.stop_mark]
    awaits = layout.stop_awaits
    for_part = awaits != np.arange(len(awaits))
    waits = waits & (awaits >= 0)
    ends = np.zeros((layout.collectives, count), np.int64)
    # How much later than their own work chain and host are after each stop, and where there is none yet.
    shift = np.zeros((stops + len(has_host), count), np.int64)
    shift[stops:] = 0 if entry_ns is None else entry_ns
    host_shift, arrived = shift.copy(), np.zeros((stops, count), np.int64)
    host_shift[stops:] = np.minimum(shift[stops:], 0 if ahead_ns is None else -ahead_ns[:, None])
    stop_rank = layout.mark_rank[layout.stop_mark]
    stop_previous = np.where(layout.stop_previous >= 0, layout.stop_previous, stops + stop_rank)
    stop_before = np.where(layout.stop_before >= 0, layout.stop_before, stops + layout.rank)
    before = [np.where(one >= 0, layout.collective[one], -1) for one in layout.earlier]
    with_host = has_host[layout.rank]
    waits_for_chain = after_local | (before[0] < 0) & ~with_host
    for step in steps:
        if len(step.stops):
            here = step.stops
            earlier = stop_previous[here]
            arrived[here] = np.maximum(shift[earlier], host_shift[earlier] + held_at_stop[here])
            ended = ends[joined[here]] - at_stop[here]
            shift[here] = np.where(joins[here, None], np.maximum(arrived[here], ended), arrived[here])
            # A host that waits goes on when what it waited for is done.
            release = np.where(joins[here, None], ends[joined[here]], shift[here] + at_stop[here])
            if for_part[here].any():
                there = awaits[here]
                release = np.where(for_part[here, None], shift[there] + at_stop[there], release)
            release = np.where(waits[here, None], release - host_at_stop[here], _NEVER)
            host_shift[here] = np.maximum(host_shift[earlier], release)
            continue
        here, stop = step.operations, stop_before[step.operations]
        local = np.maximum(shift[stop], host_shift[stop] + held_at_launch[here]) + at_launch[here]
        local[~waits_for_chain[here]] = _NEVER
        launched = host_shift[stop] + host_at_launch[here]
        launched[~with_host[here]] = _NEVER
        local = np.maximum(local, launched)
        for one in before:
            earlier = ends[one[here]]
            earlier[one[here] < 0] = _NEVER
            local = np.maximum(local, earlier)
        ready = local + lag[here]
        ends[step.collectives] = np.maximum.reduceat(ready, step.first, axis=0) + transfer[step.collectives]
    return Course(ends, shift, host_shift, arrived, held, worked, hosted)


def hosts_alone(layout: ReplayLayout, course: Course, iteration: Int64s, count: int, has_host: Bools) -> Int64s:
    """The time of the hosts alone, shape (S,), by the iterations after the first, in which the window's edge lies.

    `iteration`, shape (N,), is that of each operation, of `count`; `has_host`, shape (R,): whose hosts are followed.
    """
    if count < 2:
        return np.zeros(course.hosted.shape[1], np.int64)
    first = np.flatnonzero(np.diff(layout.mark_rank, prepend=-1))
    last = np.append(first[1:], len(layout.mark_rank)) - 1
    of_first = np.where(iteration[layout.mark_operation] <= 0, np.arange(len(layout.mark_rank)), first[0])
    begin = np.maximum(np.maximum.reduceat(of_first, first), first)
    taken = (course.hosted[last] - course.hosted[begin])[has_host[layout.mark_rank[first]]]
    return np.asarray(taken.max(axis=0, initial=0) * count // (count - 1))


def measure_fidelity(layout: ReplayLayout, course: Course, end_ns: Int64s) -> float:
    """Replayed length of the window over the measured one: the median over ranks, first to last operation's end.

    `course` is that of the traces themselves; `end_ns`, shape (N,), is when each operation ended.
    """
    first = np.searchsorted(layout.rank, np.unique(layout.rank))
    last = np.append(first[1:], len(layout.rank)) - 1
    replayed, measured = course.ends[layout.collective, 0], end_ns[last] - end_ns[first]
    some = measured > 0
    return float(np.median((replayed[last] - replayed[first])[some] / measured[some])) if some.any() else 1.0


def sum_own_times(layout: ReplayLayout, course: Course, work_ns: Int64s, owner: Int64s, transfer_ns: Int64s) -> Int64s:
    """The chain's own time since the operation before, shape (N,), in a course in which no rank waited for another.

    `work_ns` and `owner`, shape (M,): the marks' work, and whose segment it is, N: of none.
    """
    stops = layout.mark_stops
    number = np.cumsum(stops) - 1
    first = np.diff(layout.mark_rank, prepend=-1) != 0
    before = np.zeros(len(stops), np.int64)
    before[layout.operation_mark] = layout.stop_before
    at = np.zeros(len(stops), np.int64)
    launches = np.flatnonzero(~stops)
    at[launches] = np.maximum(
        course.shift[before[launches], 0], course.host_shift[before[launches], 0] + course.held[launches, 0]
    )
    at[stops] = course.arrived[:, 0]
    left = np.where(stops, course.shift[number, 0], at)
    since = np.where(first, 0, np.concatenate(([0], left[:-1])))
    progress = work_ns + at - since
    own = np.zeros(len(layout.rank) + 1, np.int64)
    np.add.at(own, owner, progress)
    # Standing still for an operation that its own host launched late is own time too.
    joined = layout.mark_operation[layout.stop_mark]
    stood = course.stood[:, 0] - transfer_ns[layout.collective[joined]]
    np.add.at(own, joined, np.where(layout.mark_joins[layout.stop_mark], np.maximum(stood, 0), 0))
    return np.maximum(own[:-1], 0)


def measure_pace(layout: ReplayLayout, was_ns: Int64s, wanted_ns: Int64s, changed: Bools, ranks: int) -> Floats:
    """The pace of each rank's host when it launches, shape (R,): pauses and data loading come before a few only.

    Its times of launching by operation, as measured and as wanted, shape (N,).
    """
    pace = np.ones(ranks)
    paced = changed & (was_ns > 0) & (wanted_ns > 0)
    for rank in np.unique(layout.rank[paced]):
        here = paced & (layout.rank == rank)
        pace[rank] = np.quantile(wanted_ns[here] / was_ns[here], _PACE)
    return np.minimum(pace, 1.0)


def _most_since(values: Int64s, layout: ReplayLayout) -> Int64s:
    """The largest of each mark's value and those before it, back to the stop before, which is left out."""
    stops = layout.mark_stops
    begins = np.diff(layout.mark_rank, prepend=-1) != 0
    begins[1:] |= stops[:-1]
    numbers = np.arange(len(begins))
    first = np.maximum.accumulate(np.where(begins, numbers, 0))
    most, step = values.copy(), 1
    while step <= int((numbers - first).max(initial=0)):
        reach = np.flatnonzero(numbers - step >= first)
        most[reach] = np.maximum(most[reach], most[reach - step])
        step *= 2
    return most


def _cumulative(own_ns: Int64s, rank: Int64s) -> Int64s:
    """Own time up to and including each mark, per rank, shape (marks, S)."""
    total = np.cumsum(own_ns, axis=0)
    first = np.searchsorted(rank, rank)
    return np.asarray(total - np.where((first > 0)[:, None], total[first - 1], 0))
