"""Finds a slow data loader among ranks that nobody shares a role with: all ranks of a job load the same data.

In a pipeline without data parallelism each stage has one rank; what their hosts spend on data loading can be compared
all the same. Guarantees: pure; compares only ranks that load in most iterations, with at least three others.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import least_z
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import FEWEST, LEAST, MOST, SIGMA
from fleetprof_analyzer.trace.trace import Bools, Int64s

_LEAST_SPREAD: Final = 0.1  # of what loading takes on the others: their stages differ


def loading_ns(table: OwnTime) -> Int64s:
    """The time of data loading on each rank's host, shape (R, K); where hosts are not followed, on its chain."""
    return table.host_parts_ns["data"] if table.host_ns.any() else table.parts_ns["data"]


def can_compare_loaders(table: OwnTime) -> bool:
    """Tells whether enough ranks load data to tell who is slow at it."""
    return int(_load(table).sum()) > FEWEST


def _load(table: OwnTime) -> Bools:
    return np.asarray((loading_ns(table) > 0).mean(axis=1) >= MOST)


def find_candidates(replay: Replay, table: OwnTime) -> list[Candidate]:
    """Candidates among the ranks without peers, mended with loading as short as usual."""
    loading, hosts = loading_ns(table), table.host_ns.any()
    usual, loads = np.median(loading, axis=1), _load(table)
    found: list[Candidate] = []
    for rank in np.flatnonzero(loads):
        others = np.flatnonzero(loads)
        others = others[others != rank]
        if len(table.peers(int(rank))) or len(others) < FEWEST:
            continue
        middle = float(np.median(usual[others]))
        spread = max(SIGMA * float(np.median(np.abs(usual[others] - middle))), _LEAST_SPREAD * middle)
        own = max(float(np.median(table.own_ns[rank])), 1.0)
        above = loading[rank] - middle
        late = above > max(LEAST * own, least_z(len(others)) * spread)
        if late.mean() < MOST:
            continue
        mended = _with_loading(replay, int(rank), middle / float(usual[rank]), bool(hosts))
        share = float(np.median(above)) / own
        found.append(Candidate(int(rank), LatePattern.PERSISTENT, share, late, FoundBy.LOADER, mended))
    return found


def _with_loading(replay: Replay, rank: int, factor: float, hosts: bool) -> tuple[Int64s, Int64s]:
    mine = replay.layout.rank == rank
    loading = replay.host_parts_ns["data"] if hosts else replay.parts_ns["data"]
    less = np.where(mine, np.rint(loading * (1 - factor)).astype(np.int64), 0)
    if hosts:
        return replay.work_ns, np.maximum(replay.host_ns - less, 0)
    return np.maximum(replay.work_ns - less, 0), replay.host_ns
