"""A job with more replicas or fewer, each with the batch that it has: its graph, and its lengths at the best and worst.

A new replica does what a captured one did, with the times of that one's other iterations: all would wait for nobody if
they took the same. Guarantees: pure; raises `NotTold`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.stage_names import OPTIMIZER_STEP
from fleetprof_analyzer.trace.trace import Int64s
from fleetprof_analyzer.whatif.edits import NotTold
from fleetprof_analyzer.whatif.replay.course import RankCourse, iterations_of_events
from fleetprof_analyzer.whatif.replay.graph import JobGraph, Lengths, Meetings
from fleetprof_analyzer.whatif.scaling.families import Replicas, find_replicas
from fleetprof_analyzer.whatif.scaling.nodes import count_nodes, find_nodes
from fleetprof_analyzer.whatif.scaling.transfers import describe_transfers, find_latency, regroup, say_latency

MOST_RANKS: Final = 256
MOST_TIMES: Final = 16
_OF_NODES: Final = 0.05  # of a transfer, for each doubling of nodes
_TOGETHER: Final = 0.5  # correlation of replicas' iterations from which they are long at the same time


@dataclass(frozen=True, slots=True)
class GrownJob:
    """The graph of another number of ranks, and its lengths: where growth costs little, and where it costs much."""

    graph: JobGraph
    lengths: list[Lengths]
    rests_on: list[str]
    uneven: float  # deviation of the slowest replica's pace


def grow(graph: JobGraph, lengths: Lengths, transfers_ns: Sequence[Int64s], ranks: int, nodes: int | None) -> GrownJob:
    """The job on `ranks` ranks with these lengths of work, and transfers from the first to the last of these.

    Raises NotTold.
    """
    before = len(graph.courses)
    _refuse(graph, ranks)
    replicas = find_replicas(graph)
    if ranks % replicas.ranks_each:
        raise NotTold(f"a replica is {replicas.ranks_each} ranks: ask for a multiple of that")
    count = ranks // replicas.ranks_each
    if count < 2:
        raise NotTold("one replica alone reduces nothing: nothing tells what it would do instead")
    placed = find_nodes(graph.courses)
    nodes_before, nodes_after = count_nodes(placed, replicas, ranks, nodes)
    transfers, is_known = _transfers(graph, replicas, count / replicas.count, transfers_ns)
    wider = 1 + _OF_NODES * max(math.log2(nodes_after / nodes_before), 0.0)
    worst = np.where(replicas.grows, np.rint(transfers[1] * wider), transfers[1]).astype(np.int64)
    sources = [(number % replicas.count, number // replicas.count) for number in range(count)]
    rank_of = [(source, rank, turn) for source, turn in sources for rank in _ranks_of(replicas, source)]
    courses = [graph.courses[rank] for _, rank, _ in rank_of]
    meetings, of_transfer = _meet(graph.meetings, replicas, sources)
    turned = _turned(graph, lengths, replicas)
    rows = [turned(rank, turn)[0] for _, rank, turn in rank_of]
    if replicas.shares_weights:
        rows = [_resize_optimizer(*one, replicas.count / count) for one in zip(courses, rows, strict=True)]
    hosts = [turned(rank, turn)[1] for _, rank, turn in rank_of]
    grown = JobGraph(
        courses, Meetings(meetings.rank, meetings.operation, meetings.collective, transfers[0][of_transfer],
                          meetings.late_ns),
        np.array([graph.begins_ns[rank] for _, rank, _ in rank_of], np.int64),
    )  # fmt: skip
    spreads = [_spread_of_machines(graph, one, replicas) for one in (lengths.row_ns, lengths.host_ns)]
    later = max(_highest_of(count) - _highest_of(replicas.count), 0.0)
    slower_rows, slower_hosts = (
        [
            np.rint(one * (1 + spread * later)).astype(np.int64) if source == 0 and turn == 1 else one
            for one, (source, _, turn) in zip(every, rank_of, strict=True)
        ]
        for every, spread in zip((rows, hosts), spreads, strict=True)
    )
    return GrownJob(
        grown,
        [Lengths(hosts, rows, transfers[0][of_transfer]), Lengths(slower_hosts, slower_rows, worst[of_transfer])],
        [
            f"{before} captured ranks in {replicas.count} replicas of {replicas.ranks_each}; {count} replicas then, "
            f"on {nodes_after} node(s) instead of {nodes_before}, each with the batch that it has",
            f"latency of transfers {say_latency(is_known)}",
        ],
        max(spreads[0], spreads[1] if _is_bound_by_hosts(lengths) else 0.0),
    )


def _refuse(graph: JobGraph, ranks: int) -> None:
    before = len(graph.courses)
    world = {one.operations.world_size for one in graph.courses if one.operations is not None} - {None}
    if any(one.kind == "cpu" for one in graph.courses):
        raise NotTold("ranks without a device share the cores of their host: nothing tells how fast more would be")
    if before < 2 or not len(graph.meetings.rank):
        raise NotTold("fewer than two ranks that meet were captured")
    if world and max(one for one in world if one is not None) > before:
        raise NotTold(f"{before} of the job's {max(filter(None, world))} ranks were captured: capture all")
    if ranks > min(MOST_RANKS, MOST_TIMES * before):
        raise NotTold(f"{ranks} ranks are far from {before}: up to {min(MOST_RANKS, MOST_TIMES * before)} are told")


def _ranks_of(replicas: Replicas, replica: int) -> list[int]:
    return [int(one) for one in np.flatnonzero(replicas.of_rank == replica)]


def _transfers(
    graph: JobGraph, replicas: Replicas, factor: float, every_ns: Sequence[Int64s]
) -> tuple[tuple[Int64s, Int64s], bool]:
    """The shorter and the longer transfers of all collectives; whether their latency is told."""
    best, worst, is_known = every_ns[0].copy(), every_ns[-1].copy(), True
    for found, now_ns, at in ((best, every_ns[0], 0), (worst, every_ns[-1], 1)):
        every = describe_transfers(graph, now_ns)
        for size in np.unique(every.members[replicas.grows]):
            chosen = np.flatnonzero(replicas.grows & (every.members == size))
            of = every.take(chosen)
            latency, known = find_latency(of)
            is_known = is_known and known
            found[chosen] = regroup(of, latency, factor)[at]
    return (best, worst), is_known


def _meet(meetings: Meetings, replicas: Replicas, sources: Sequence[tuple[int, int]]) -> tuple[Meetings, Int64s]:
    """The collectives of all new replicas, and of each the captured one that it is like."""
    each, count = replicas.ranks_each, len(meetings.transfer_ns)
    place = np.zeros(len(replicas.of_rank), np.int64)
    for replica in range(replicas.count):
        place[replicas.of_rank == replica] = np.arange(each)
    of_member = replicas.of_rank[meetings.rank]
    rank, operation, key, late = [], [], [], []
    for number, (source, _) in enumerate(sources):
        here = np.flatnonzero(of_member == source)
        collective = meetings.collective[here]
        rank.append(number * each + place[meetings.rank[here]])
        operation.append(meetings.operation[here])
        key.append(np.where(replicas.grows[collective], collective, (number + 1) * count + collective))
        late.append(meetings.late_ns[here])
    kept, renumbered = np.unique(np.concatenate(key), return_inverse=True)
    joined = Meetings(
        np.concatenate(rank), np.concatenate(operation), renumbered.astype(np.int64), _NOTHING, np.concatenate(late)
    )
    return joined, kept % count


_NOTHING: Final = np.zeros(0, np.int64)


class _Turns:
    """Lengths of a captured rank with its iterations in another order."""

    def __init__(self, graph: JobGraph, lengths: Lengths, *, turns: bool) -> None:
        self._graph, self._lengths, self._turns = graph, lengths, turns

    def __call__(self, rank: int, turn: int) -> tuple[Int64s, Int64s]:
        """(rows, host) of the rank, `turn` iterations later."""
        rows, host = self._lengths.row_ns[rank], self._lengths.host_ns[rank]
        course = self._graph.courses[rank]
        if not turn or not self._turns:
            return rows, host
        names = course.rows.name
        return (
            _turn(rows, self._graph.times[rank].iteration, names, turn),
            _turn(host, iterations_of_events(course), course.host.kind, turn),
        )


def _turned(graph: JobGraph, lengths: Lengths, replicas: Replicas) -> _Turns:
    return _Turns(graph, lengths, turns=not _are_long_together(graph, lengths, replicas))


def _turn(lengths: Int64s, iteration: Int64s, what: np.ndarray[tuple[int], np.dtype[np.generic]], turn: int) -> Int64s:
    inside = np.flatnonzero(iteration >= 0)
    counts = np.bincount(iteration[inside]) if len(inside) else np.zeros(0, np.int64)
    numbers = np.flatnonzero(counts)
    if len(numbers) < 2:
        return lengths
    found = lengths.copy()
    of_iteration = [inside[iteration[inside] == number] for number in numbers]
    alike = len({len(one) for one in of_iteration}) == 1
    for at, mine in enumerate(of_iteration):
        other = of_iteration[(at + turn) % len(of_iteration)]
        if alike and np.array_equal(what[mine], what[other]):
            found[mine] = lengths[other]
        elif (total := int(lengths[mine].sum())) > 0:
            found[mine] = np.rint(lengths[mine] * (int(lengths[other].sum()) / total)).astype(np.int64)
    return found


def _sum_by(iteration: Int64s, lengths: Int64s) -> Int64s:
    inside = iteration >= 0
    return np.bincount(iteration[inside], lengths[inside]).astype(np.int64)


def _are_long_together(graph: JobGraph, lengths: Lengths, replicas: Replicas) -> bool:
    """Tells whether the replicas' own work is more in the same iterations: their batches are drawn as one."""
    firsts = [_ranks_of(replicas, one)[0] for one in range(min(replicas.count, 8))]
    sums = [_sum_by(graph.times[rank].iteration, lengths.row_ns[rank]) for rank in firsts]
    count = min(len(one) for one in sums)
    if count < 4 or len(sums) < 2:
        return False
    table = np.array([one[-count:] for one in sums], np.float64)
    if (table.std(axis=1) == 0).any():
        return False
    pairs = np.atleast_2d(np.corrcoef(table))[np.triu_indices(len(table), 1)]
    return bool(np.median(pairs) > _TOGETHER)


def _spread_of_machines(graph: JobGraph, every_ns: Sequence[Int64s], replicas: Replicas) -> float:
    """The deviation of the paces of machines that do the same, by rows or hosts, without that of their iterations."""
    totals = np.array(
        [[every_ns[rank].sum() for rank in _ranks_of(replicas, one)] for one in range(replicas.count)], np.float64
    )
    spread = float(np.median(totals.std(axis=0, ddof=1) / np.maximum(totals.mean(axis=0), 1.0)))
    varies = [0.0]
    for rank, course in enumerate(graph.courses):
        lengths = every_ns[rank]
        iteration = graph.times[rank].iteration if len(lengths) == len(course.rows) else iterations_of_events(course)
        sums = _sum_by(iteration, lengths)
        if len(sums) > 1 and sums.mean() > 0:
            varies.append(float(sums.std() / sums.mean()) / math.sqrt(len(course.bounds)))
    return math.sqrt(max(spread**2 - float(np.median(varies)) ** 2, 0.0))


def _is_bound_by_hosts(lengths: Lengths) -> bool:
    return sum(int(one.sum()) for one in lengths.host_ns) > sum(int(one.sum()) for one in lengths.row_ns)


def _highest_of(count: int) -> float:
    """The usual highest of so many normal values, in standard deviations (Blom)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def _resize_optimizer(course: RankCourse, rows: Int64s, factor: float) -> Int64s:
    """The optimizer of a rank that holds another part of the weights."""
    trace = course.trace
    chosen = np.array([OPTIMIZER_STEP.search(name) is not None for name in trace.names], np.bool_)
    host = trace.rows.select(~trace.rows.on_device & chosen[trace.rows.name])
    inside = covered(course.rows.called_ns, union(host.start_ns, host.end_ns))
    return np.where(inside, np.rint(rows * factor), rows).astype(np.int64)
