"""Which ranks have more to do than their peers: by the sizes of their tensors, by the threads that kernels launch, by
kernels that the peers do not run, or by operators at their medians.

What differs from iteration to iteration is moving work, no rank's own; these are ranks that have more throughout.
Guarantees: pure; on a device only what was launched counts, never how long it took.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.causes.operators import OperatorWork, compare_work
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.rank.communication.operations import Signature
from fleetprof_analyzer.rank.communication.work import MOST_SIGNATURES
from fleetprof_analyzer.trace.trace import Bools

_EXPLAINED: Final = 0.5  # of the excess
_MOST_FEWER: Final = 0.25  # of what a rank has more of
_LEAST_EXCESS: Final = 0.1  # of what peers take for their operators, at their medians
_MOST_TOLD_BY_RUNS: Final = 1.0  # more work than the peers' all; waits for a core lengthen operators without end
_LEAST_SAMPLED: Final = 5  # iterations
_LEAST_OWN_EXCESS: Final = 0.01


@dataclass(frozen=True, slots=True)
class MoreKernels:
    """Kernels per iteration, on the rank and on its peers."""

    here: float
    usual: float


def has_larger_tensors(table: OwnTime, candidate: Candidate) -> bool:
    """Whether a rank that is late throughout was given so much larger tensors that its device is busy for longer."""
    work = compare_operators(table, candidate.rank) if candidate.pattern == "persistent" else None
    if work is None or work.sizes is None or not work.sizes.larger:
        return False
    peers, busy = table.peers(candidate.rank), table.parts_ns["busy"]
    more_own, more_busy = (
        float(np.median((values[candidate.rank] - np.median(values[peers], axis=0))[candidate.iterations]))
        for values in (table.own_ns, busy)
    )
    enough = work.sizes.share > _EXPLAINED * _excess(table, candidate.rank, candidate.iterations)
    return enough and more_busy >= _EXPLAINED * more_own


def more_threads(table: OwnTime, candidate: Candidate) -> float | None:
    """How many more threads the rank's kernels launch, as a share of the peers'; None where that is not its excess.

    Where tensors are known to be no larger than the peers', other kernels were chosen for the same work.
    """
    peers = table.peers(candidate.rank)
    if len(peers) == 0:
        return None
    mine, theirs = table.work[candidate.rank], np.median(table.work[peers], axis=0)
    known = candidate.iterations & np.isfinite(mine) & np.isfinite(theirs) & (theirs > 0)
    work = compare_operators(table, candidate.rank)
    is_alike = work is not None and work.sizes is not None and not work.sizes.larger
    if is_alike or not known.any():
        return None
    more = float(np.median(mine[known] / theirs[known])) - 1
    return more if more > _EXPLAINED * _excess(table, candidate.rank, known) else None


def more_kernels(table: OwnTime, candidate: Candidate) -> MoreKernels | None:
    """What the rank's device does beside all that its peers' devices do; None where that is not its excess.

    Where the rank lacks kernels of its peers, other kernels were chosen for the same work.
    """
    peers = table.peers(candidate.rank)
    if candidate.pattern != "persistent" or len(peers) == 0 or not table.signatures:
        return None
    mine = {one.kernel: one for one in table.signatures[candidate.rank]}
    theirs = [{one.kernel: one for one in table.signatures[peer]} for peer in peers.tolist()]
    # A kernel that a list does not hold may have been cut off at its end.
    least = max((min(_time(one) for one in of.values()) for of in theirs if len(of) >= MOST_SIGNATURES), default=0)
    extra = fewer = usual = times = usual_times = 0.0
    for kernel in {*mine, *itertools.chain(*theirs)}:
        held = [of[kernel] for of in theirs if kernel in of]
        often = float(np.median([of[kernel].count if kernel in of else 0 for of in theirs]))
        one = mine.get(kernel) or held[0]
        here = mine[kernel].count if kernel in mine else 0
        # On some of them it may never have run without communication beside it.
        known = [other.median_ns for other in held if other.median_ns] or [one.median_ns]
        duration_ns = float(np.median(known))
        usual, usual_times, times = usual + often * duration_ns, usual_times + often, times + here
        if (kernel in mine and held) or _time(one) > least:
            extra += max(here - often, 0.0) * duration_ns
            fewer += max(often - here, 0.0) * duration_ns
    busy = table.parts_ns["busy"]
    level = float(np.median(busy[peers].sum(axis=1))) / max(float(np.median(table.own_ns[peers].sum(axis=1))), 1.0)
    more = (extra - fewer) / usual * min(level, 1.0) if usual else 0.0
    if fewer > _MOST_FEWER * extra or more <= _EXPLAINED * _excess(table, candidate.rank, candidate.iterations):
        return None
    count = busy.shape[1]
    return MoreKernels(times / count, usual_times / count)


def _time(one: Signature) -> int:
    return one.count * one.median_ns


def _excess(table: OwnTime, rank: int, iterations: Bools) -> float:
    """By how much its own time exceeds the peers'; what only its host shows may not exceed it at all."""
    own = np.median(table.own_ns[table.peers(rank)], axis=0)[iterations]
    return max(float(np.median(table.own_ns[rank][iterations] / np.maximum(own, 1))) - 1, _LEAST_OWN_EXCESS)


def compare_operators(table: OwnTime, rank: int) -> OperatorWork | None:
    """A rank's operators beside those of its peers; None where they do not tell."""
    peers = table.peers(rank).tolist()
    if not table.operators or not peers:
        return None
    return compare_work(table.operators[rank], [table.operators[peer] for peer in peers], table.own_ns.shape[1])


def weigh_work(table: OwnTime, candidates: list[Candidate], *, on_host: bool) -> list[Candidate]:
    """The candidates, and those that only their work shows: `on_host`, for a device hides its host's operators.

    Who had more to do in some iterations is no candidate: such work moves, and chance gives one rank more of it.
    """
    kept = []
    for candidate in candidates:
        more = more_threads(table, candidate) if candidate.by == "peers" else None
        larger = candidate.by == "peers" and not on_host and has_larger_tensors(table, candidate)
        if candidate.by == "peers" and more is None and not larger and not on_host:
            larger = more_kernels(table, candidate) is not None
        if more is None and not larger:
            kept.append(candidate)
        elif candidate.pattern == "persistent":
            kept.append(replace(candidate, by="work"))
    known = {candidate.rank for candidate in candidates}
    by_operators = find_more_work(table) if on_host else []
    return kept + [candidate for candidate in by_operators if candidate.rank not in known]


def runs_more(table: OwnTime, rank: int, share: float) -> bool:
    """Whether the training thread is on a core for so much longer than the peers' as more work of that share needs.

    A rank that waits for cores has longer operators, and runs no longer. True where threads were not sampled.
    """
    peers = table.peers(rank)
    if not table.on_host or table.ran_ns.shape != table.own_ns.shape or len(peers) == 0:
        return True
    known = np.isfinite(table.ran_ns).all(axis=0)
    if known.sum() < _LEAST_SAMPLED:
        return True
    mine, usual = float(np.median(table.ran_ns[rank, known])), float(np.median(table.ran_ns[peers][:, known]))
    return mine - usual >= _EXPLAINED * min(share, _MOST_TOLD_BY_RUNS) * usual


def find_more_work(table: OwnTime) -> list[Candidate]:
    """Ranks whose operators have more to do at their medians, however much others disturb them all."""
    found = []
    every = np.ones(table.own_ns.shape[1], np.bool_)
    for rank in range(len(table.own_ns)):
        work = compare_operators(table, rank)
        if work is None:
            continue
        usual = max(work.usual_ns, 1.0)
        is_more = work.is_more and (
            runs_more(table, rank, work.more_ns / usual) if work.sizes is None else work.sizes.is_much_more
        )
        more = work.more_ns / usual if is_more else 0.0
        extra = work.extra_ns / usual
        if max(more, extra) >= _LEAST_EXCESS:
            by = "work" if more >= extra else "operators"
            found.append(Candidate(rank, "persistent", max(more, extra), every, by=by))
    return found
