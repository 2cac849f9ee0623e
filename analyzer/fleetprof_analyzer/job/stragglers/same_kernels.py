"""Finds a slow GPU among ranks that nobody shares a role with: by the kernels that they have in common.

In a pipeline without data parallelism each stage has one rank, but all stages run the same layers. Guarantees:
compares only kernels of one name and launch shape, on at least three ranks; pure.
"""

from collections import defaultdict
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate, least_z
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.trace.trace import Int64s

_SIGMA: Final = 1.4826
_LEAST_RANKS: Final = 3
_LEAST_SHARED: Final = 2
_LEAST_SPREAD: Final = 0.006
_LEAST_FACTOR: Final = 0.06


def kernel_factors(matched: Matched) -> Floats:
    """log(how many times longer the same kernels take than on the others), shape (R,); nan where too few are shared."""
    holders: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(matched.ranks):
        for signature in one.signatures:
            if signature.median_ns > 0:
                holders[signature.kernel].append((number, signature.median_ns))
    ratios: dict[int, list[float]] = defaultdict(list)
    for members in holders.values():
        if len(members) < _LEAST_RANKS:
            continue
        durations = np.array([duration for _, duration in members], np.float64)
        for (number, _), ratio in zip(members, np.log(durations / medians_of_others(durations)).tolist(), strict=True):
            ratios[number].append(ratio)
    return np.array(
        [
            np.median(ratios[number]) if len(ratios[number]) >= _LEAST_SHARED else np.nan
            for number in range(len(matched.ranks))
        ]
    )


def medians_of_others(values: Floats) -> Floats:
    """For each of n values, n at least 2, the median of all but it; shape (n,)."""
    order = np.argsort(values)
    place = np.empty(len(values), np.intp)
    place[order] = np.arange(len(values))
    ordered = values[order]
    # Without itself what stands behind it moves up by one.
    low, high = (len(values) - 2) // 2, (len(values) - 1) // 2
    return np.asarray((ordered[low + (place <= low)] + ordered[high + (place <= high)]) / 2)


def find_slow_devices(replay: Replay, table: OwnTime) -> tuple[list[Candidate], dict[int, tuple[Int64s, Int64s]]]:
    """(candidates among the ranks without peers, their own work and host's time, the device as fast as the others')."""
    found: list[Candidate] = []
    wanted: dict[int, tuple[Int64s, Int64s]] = {}
    alone = [rank for rank in range(len(replay.matched.ranks)) if len(table.peers(rank)) == 0]
    if not alone:
        return found, wanted
    factors = kernel_factors(replay.matched)
    known = np.flatnonzero(np.isfinite(factors))
    for rank in known[np.isin(known, alone)]:
        if len(known) < _LEAST_RANKS:
            continue
        others = np.delete(factors[known], np.flatnonzero(known == rank)[0])
        spread = max(_SIGMA * float(np.median(np.abs(others - np.median(others)))), _LEAST_SPREAD)
        above = float(factors[rank] - np.median(others))
        if above > max(least_z(len(others)) * spread, _LEAST_FACTOR):
            every = np.ones(table.own_ns.shape[1], np.bool_)
            found.append(
                Candidate(int(rank), "persistent", float(np.expm1(above)), every, above / spread, by="kernels")
            )
            busy = replay.parts_ns["busy"]
            less = np.rint(busy * -np.expm1(-above)).astype(np.int64)
            wanted[int(rank)] = (replay.work_ns - less, replay.host_ns)
    return found, wanted
