"""Transfers of collectives as latency and bandwidth (α–β), and in a group with more members or fewer.

A ring of n sends (n - 1) / n of the data in n - 1 steps, a tree all of it in log n steps; which of both runs no trace
says, nor what of a short transfer is steps. So there are two answers, and the truth lies between. Guarantees: pure.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.trace import Bools, Int64s
from fleetprof_analyzer.whatif.replay.graph import JobGraph

SMALL_ELEMENTS: Final = 4096
"""At most as many has a loss or a norm: their transfers are latency alone."""
_STEP_NS: Final = 3_000  # the longest that a step of a ring usually takes, where the capture does not tell
_MOST_LATENCY: Final = 0.5  # of a transfer
_APART: Final = 2.0  # sizes that tell latency from bandwidth
_BY_TREES: Final = ("all_reduce", "broadcast", "reduce", "barrier")


@dataclass(frozen=True, slots=True)
class GroupTransfers:
    """c transfers: kinds (indices into `KINDS`), elements (-1: unsaid), times, and the members of their groups."""

    kind: Int64s
    elements: Int64s
    transfer_ns: Int64s
    members: Int64s

    def take(self, chosen: Int64s) -> "GroupTransfers":
        """Some of them."""
        return GroupTransfers(self.kind[chosen], self.elements[chosen], self.transfer_ns[chosen], self.members[chosen])

    @property
    def is_small(self) -> Bools:
        """Tells which are of single values, shape (c,)."""
        return (self.elements >= 0) & (self.elements <= SMALL_ELEMENTS)


def describe_transfers(graph: JobGraph, transfer_ns: Int64s) -> GroupTransfers:
    """All collectives of a job, as members that were captured say them."""
    meetings, count = graph.meetings, len(transfer_ns)
    kind, elements = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    for number, course in enumerate(graph.courses):
        here = np.flatnonzero(meetings.rank == number)
        if course.operations is not None and len(here):
            columns, at = course.operations.columns, meetings.operation[here]
            kind[meetings.collective[here]] = columns.kind[at]
            elements[meetings.collective[here]] = columns.elements[at]
    members = np.bincount(meetings.collective, minlength=count).astype(np.int64)
    return GroupTransfers(kind, elements, transfer_ns, members)


def latencies(graph: JobGraph, transfer_ns: Int64s) -> tuple[Int64s, bool]:
    """(the latency of each transfer at the most, shape (c,), whether the capture tells them all)."""
    every = describe_transfers(graph, transfer_ns)
    found, is_known = np.zeros(len(transfer_ns), np.int64), True
    for size in np.unique(every.members):
        chosen = np.flatnonzero(every.members == size)
        found[chosen], known = find_latency(every.take(chosen))
        is_known = is_known and known
    return found, is_known


def say_latency(is_known: bool) -> str:
    """The source of a latency, in words."""
    return "as transfers of other sizes tell" if is_known else f"up to {_STEP_NS / 1000:.0f} µs for each member"


def find_latency(transfers: GroupTransfers) -> tuple[Int64s, bool]:
    """(the latency of each transfer at the most, shape (c,), whether the capture tells it); groups of one size.

    By a line through the transfers of a kind at sizes that are twice apart, else by those of single values, else by
    what a step usually takes.
    """
    is_small = transfers.is_small
    known = bool(is_small.any())
    latency = (transfers.members - 1) * _STEP_NS
    if known:
        latency = np.full(len(latency), int(np.median(transfers.transfer_ns[is_small])), np.int64)
    for kind in np.unique(transfers.kind):
        fitted = _intercept(transfers, (transfers.kind == kind) & ~is_small & (transfers.elements > 0))
        if fitted is not None:
            latency = np.where(transfers.kind == kind, round(fitted), latency)
            known = True
    most = np.where(is_small, 1.0, _MOST_LATENCY) * transfers.transfer_ns
    return np.minimum(np.where(is_small, transfers.transfer_ns, latency), most).astype(np.int64), known


def _intercept(transfers: GroupTransfers, chosen: Bools) -> float | None:
    sizes = np.unique(transfers.elements[chosen])
    if len(sizes) < 2 or sizes[-1] < _APART * sizes[0]:
        return None
    usual = np.array([np.median(transfers.transfer_ns[chosen & (transfers.elements == size)]) for size in sizes])
    slope, constant = np.polyfit(sizes.astype(np.float64), usual, 1, w=1 / np.maximum(usual, 1.0))
    return max(float(constant), 0.0) if slope > 0 else None


def regroup(transfers: GroupTransfers, latency_ns: Int64s, factor: float) -> tuple[Int64s, Int64s]:
    """(the shorter, the longer) transfers if the groups have `factor` times the members."""
    before = transfers.members.astype(np.float64)
    after = before * factor
    ring = ((after - 1) / after) / ((before - 1) / before)
    by_tree = np.isin(transfers.kind, [KINDS.index(one) for one in _BY_TREES])
    rest = transfers.transfer_ns - latency_ns
    constant = rest * np.where(by_tree, 1.0, ring) + latency_ns
    stepwise = rest * ring + latency_ns * (after - 1) / (before - 1)
    pair = np.minimum(constant, stepwise), np.maximum(constant, stepwise)
    return np.rint(pair[0]).astype(np.int64), np.rint(pair[1]).astype(np.int64)
