"""Which ranks have more to do than their peers: by what their kernels would take at the peers' pace, by the sizes of
their tensors, or by operators at their medians.

What differs from iteration to iteration is moving work, no rank's own; these are ranks that have more throughout.
Guarantees: pure; on a device only what was launched counts, never how long it took.
"""

from dataclasses import dataclass, replace

import numpy as np

from fleetprof_analyzer.job.stragglers.causes.operators import OperatorWork, compare_work
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.search.same_kernels import Kernels, compare_speed, given_work_ns
from fleetprof_analyzer.job.stragglers.thresholds import HALF, LEAST, MOST


@dataclass(frozen=True, slots=True)
class MoreOnDevice:
    """The work that a rank's device was given more than its peers', as a share at their pace; kernels per iteration."""

    share: float
    calls: float
    usual_calls: float


def find_more_on_device(table: OwnTime, candidate: Candidate) -> MoreOnDevice | None:
    """The work that the rank's device got in its late iterations; None where that is not half of what it is late by."""
    rank, peers = candidate.rank, table.peers(candidate.rank)
    if len(peers) == 0 or table.on_host or not table.signatures:
        return None
    own_ns, late = table.own_ns, candidate.iterations
    work = compare_operators(table, rank)
    sizes = None if work is None else work.sizes
    others = Kernels.of(table.signatures[peer] for peer in peers.tolist())
    # Of the same tensors whose kernels launch more threads other kernels were chosen.
    speed = compare_speed(table.signatures[rank], others, by_calls=sizes is not None)
    if speed is None:
        return None
    even = replace(speed, factor=1.0)
    given_ns = given_work_ns(table, rank, speed)
    usual_ns = np.median([given_work_ns(table, peer, even) for peer in peers.tolist()], axis=0)
    known = late & np.isfinite(given_ns) & np.isfinite(usual_ns)
    if not known.any():
        return None
    more_ns = given_ns - usual_ns
    if sizes is not None:
        more_ns = np.maximum(more_ns, sizes.share * usual_ns)
    late_ns = own_ns[rank] - np.median(own_ns[peers], axis=0)
    explained = more_ns >= HALF * np.maximum(late_ns, LEAST * own_ns[rank].mean())
    enough = more_ns[known].mean() >= HALF * late_ns[known].mean()
    if not enough or explained[known].mean() < MOST:
        return None
    calls = [sum(one.count for one in signatures) / own_ns.shape[1] for signatures in table.signatures]
    share = float(more_ns[known].mean() / usual_ns[known].mean())
    return MoreOnDevice(share, calls[rank], float(np.median([calls[peer] for peer in peers.tolist()])))


def compare_operators(table: OwnTime, rank: int) -> OperatorWork | None:
    """A rank's operators beside those of its peers; None where they do not tell."""
    peers = table.peers(rank).tolist()
    if not table.operators or not peers:
        return None
    return compare_work(table.operators[rank], [table.operators[peer] for peer in peers], table.own_ns.shape[1])


def weigh_work(table: OwnTime, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, with their work as evidence where their devices were given more.

    Who had more to do in some iterations is no candidate: such work moves, and chance gives one rank more of it.
    """
    kept = []
    for candidate in candidates:
        if candidate.by != FoundBy.PEERS or find_more_on_device(table, candidate) is None:
            kept.append(candidate)
        elif candidate.pattern == LatePattern.PERSISTENT:
            kept.append(replace(candidate, by=FoundBy.WORK))
    return kept
