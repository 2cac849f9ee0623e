"""Tells whether a slow device is throttled: by its sampled clock, or because it is slow in parts of the window only.

Guarantees: pure; a clock that was not sampled is never blamed.
"""

from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np
from fleetprof_api.report.stragglers import Evidence

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.outliers import binomial_tail
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.search.same_kernels import Kernels, compare_speed, given_work_ns
from fleetprof_analyzer.job.stragglers.thresholds import FEW_RANKS, HALF, RARE, SEVERAL, SIGMA, USUAL
from fleetprof_analyzer.trace.trace import Bools

_SLOWER_CLOCK: Final = 0.97
_LEAST_AT_SPEED: Final = 0.1  # of what it took
_CLEAR_SHARE: Final = 0.9
NOTHING_LEFT: Final = 0.05  # of what is usual for the late iterations


def find_slower_clock(table: OwnTime, candidate: Candidate) -> list[Evidence]:
    """The device's clock in the late iterations, where it was sampled and lower than usual."""
    rank, late = candidate.rank, candidate.iterations
    mine = table.clock_megahertz[rank]
    others = table.clock_megahertz[table.peers(rank)]
    if len(others) == 0:
        others = np.delete(table.clock_megahertz, rank, axis=0)
    usual = np.nanmedian(others) if np.isfinite(others).any() else np.nan
    rest = mine[~late & np.isfinite(mine)]
    usual = usual if np.isfinite(usual) else float(np.median(rest)) if len(rest) else np.nan
    sampled = mine[late & np.isfinite(mine)]
    if len(sampled) == 0 or not np.isfinite(usual) or float(np.median(sampled)) > _SLOWER_CLOCK * usual:
        return []
    return [
        Evidence(
            measure="clock of the device", value=round(float(np.median(sampled))), usual=round(float(usual)), unit="MHz"
        )
    ]


def measure_slowness(table: OwnTime, rank: int) -> Floats:
    """By what share the device took longer for its work than at the others' speed, per iteration, shape (K,).

    The others are its peers, without any all ranks. Where its work is not known the peers' median is its measure, and
    without peers its own fastest iteration.
    """
    busy, peers = table.parts_ns["busy"].astype(np.float64), table.peers(rank).tolist()
    others = peers or [other for other in range(len(busy)) if other != rank]
    speed = None
    if table.signatures:
        speed = compare_speed(table.signatures[rank], Kernels.of(table.signatures[other] for other in others))
    if speed is not None:
        given = given_work_ns(table, rank, speed)
        even = replace(speed, factor=1.0)
        usual_given = np.median([given_work_ns(table, other, even) for other in peers], axis=0) if peers else given
        if np.isfinite(given).all() and np.isfinite(usual_given).all() and (given > 0).all():
            if not peers:
                return np.asarray(busy[rank] / given * (speed.factor * given.sum() / busy[rank].sum()) - 1)
            at_speed = np.median(busy[peers], axis=0) + given - usual_given
            return np.asarray(busy[rank] / np.maximum(at_speed, np.maximum(_LEAST_AT_SPEED * busy[rank], 1)) - 1)
    usual = np.median(busy[peers], axis=0) if peers else busy[rank].min()
    return np.asarray(busy[rank] / np.maximum(usual, 1) - 1)


def time_by_slowness(busy_ns: Floats, slowness: Floats) -> Floats:
    """The part of the work's time that the slowness of the device adds; 0 in an iteration without work."""
    return np.asarray(busy_ns * slowness / np.maximum(1 + slowness, np.finfo(np.float64).tiny))


def comes_and_goes(excess: Floats, candidate: Candidate, *, beside_peers: bool, noise: float = 0.0) -> bool:
    """Tells whether a device was slow in one part of the window, or clearly either slow or not: clocks, not the chip.

    `beside_peers`: `excess`, shape (K,), is that over them. Then one iteration tells in which nothing is left of it.
    `noise`: its deviation without a fault. Where that makes so many iterations of a slow device fast, they say nothing.
    """
    late: Bools = candidate.iterations & (excess > 0)
    if not late.any():
        return False
    high = float(np.median(excess[late]))
    slow = excess > HALF * high
    fast = excess < USUAL * high
    if noise > 0:
        by_chance = NormalDist(float(excess.mean()), noise).cdf(USUAL * high)
        if binomial_tail(len(excess), by_chance, int(fast.sum())) > RARE:
            return False
    edges = int(np.abs(np.diff(slow.astype(np.int8))).sum())
    # The first iteration lies at the window's edge.
    is_gone = beside_peers and bool((np.abs(excess[1:]) < NOTHING_LEFT * high).any())
    goes = is_gone or fast.sum() >= SEVERAL
    return bool(goes and (edges <= 2 or (fast | slow).mean() >= _CLEAR_SHARE))


def measure_noise(table: OwnTime, rank: int) -> float:
    """The deviation of the slowness of a device without a fault, where its work is not all known.

    By some of the peers, 0 without any.
    """
    found = [measure_slowness(table, peer) for peer in table.peers(rank)[:FEW_RANKS].tolist()]
    return SIGMA * float(np.median([np.abs(one - np.median(one)) for one in found])) if found else 0.0
