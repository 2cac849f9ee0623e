"""A rank's own times if it were like its peers, which a what-if puts in their place.

Guarantees: pure; a rank is never its own reference while it has peers.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.trace.trace import Bools, Int64s

_LEAST_STALL: Final = 0.1  # of the usual own time


@dataclass(frozen=True, slots=True)
class Reference:
    """Own times and lags of the operations `known`, shape (N,); the others' values are as measured."""

    work_ns: Int64s
    host_ns: Int64s
    lag_ns: Int64s
    known: Bools


def of_peers(replay: Replay, table: OwnTime, rank: int) -> Reference:
    """The median of the peers at the same place of the program in the same iteration.

    Where few peers tell, one that stalls is no measure there: the rank keeps its own time.
    """
    layout, peers = replay.layout, table.peers(rank)
    work, host, lag = replay.work_ns.copy(), replay.host_ns.copy(), replay.lag_ns.copy()
    known = np.zeros(len(work), np.bool_)
    mine = np.flatnonzero((layout.rank == rank) & (replay.iteration >= 0))
    regular = mine[replay.program_position[mine] >= 0]
    at = (replay.iteration[regular], replay.program_position[regular])
    least_stall_ns = _LEAST_STALL * float(np.median(table.own_ns[table.role == table.role[rank]]))
    for target, values in ((work, replay.work_ns), (host, replay.host_ns), (lag, replay.lag_ns)):
        median = _median_of(replay, peers, values)[at]
        found = ~np.isnan(median)
        own, usual = values[regular[found]], median[found]
        stalls = usual > own + least_stall_ns
        target[regular[found]] = np.where(stalls, own, usual).astype(np.int64)
        known[regular[found]] = True
    # Iterations of another shape: as a whole in proportion.
    odd = mine[~known[mine]]
    ratio = np.minimum(np.median(table.own_ns[peers], axis=0) / np.maximum(table.own_ns[rank], 1), 1.0)
    strays = odd[replay.is_stray[odd]]
    for times in (work, host):
        times[odd] = np.rint(times[odd] * ratio[replay.iteration[odd]]).astype(np.int64)
        # What lies before a stray is a part of the segment that the peers have there as one.
        for stray in strays:
            following = regular[np.searchsorted(regular, stray) :][:1]
            times[following] = np.maximum(times[following] - times[stray], 0)
    known[odd] = True
    return Reference(work, host, lag, known)


def of_itself(replay: Replay, candidate: Candidate) -> Reference:
    """Without peers: where the rank was late, the median over its other iterations."""
    work, host, lag = replay.work_ns.copy(), replay.host_ns.copy(), replay.lag_ns.copy()
    mine = (replay.layout.rank == candidate.rank) & (replay.program_position >= 0) & (replay.iteration >= 0)
    late = mine & candidate.iterations[np.maximum(replay.iteration, 0)]
    for position in np.unique(replay.program_position[late]):
        here = late & (replay.program_position == position)
        usual = mine & ~late & (replay.program_position == position)
        for values in (work, host, lag):
            if usual.any():
                values[here] = np.minimum(values[here], int(np.median(values[usual])))
    return Reference(work, host, lag, late)


def of_other_iterations(replay: Replay, table: OwnTime, candidate: Candidate) -> Reference:
    """Without what the rank takes longer than its peers in the iterations in which it is late.

    What other programs do to it in the others stays as it was.
    """
    usual = np.median(table.own_ns[table.peers(candidate.rank)], axis=0)
    beyond = np.where(candidate.iterations, np.maximum(table.own_ns[candidate.rank] - usual, 0.0), 0.0)
    mine = (replay.layout.rank == candidate.rank) & (replay.iteration >= 0)
    return Reference(take_off(replay, table, candidate.rank, beyond), replay.host_ns, replay.lag_ns, mine)


def shrink_to_peers(replay: Replay, table: OwnTime, rank: int) -> Int64s:
    """All own times, shape (N,), the rank's as long as the peers' in each iteration, and nowhere longer than before."""
    usual = np.median(table.own_ns[table.peers(rank)], axis=0)
    return take_off(replay, table, rank, np.maximum(table.own_ns[rank] - usual, 0.0))


def take_off(replay: Replay, table: OwnTime, rank: int, beyond_ns: Floats) -> Int64s:
    """All own times, shape (N,), the rank's shorter by so much in each iteration, shape (K,).

    They shrink where they exceed the peers', and never below them.
    """
    like_peers = of_peers(replay, table, rank)
    longer = np.where(like_peers.known, np.maximum(replay.work_ns - like_peers.work_ns, 0), 0)
    inside = replay.iteration >= 0
    total = np.bincount(replay.iteration[inside], longer[inside], len(beyond_ns))
    share = np.minimum(beyond_ns / np.maximum(total, 1.0), 1.0)[np.maximum(replay.iteration, 0)]
    return replay.work_ns - np.where(inside, np.rint(longer * share), 0).astype(np.int64)


def _median_of(replay: Replay, peers: Int64s, values: Int64s) -> Floats:
    """Shape (iterations, places of the program); nan where no peer has the place."""
    layout = replay.layout
    shape = (len(peers), len(replay.matched.iterations), int(replay.program_position.max()) + 1)
    grid = np.full(shape, np.nan)
    row = np.full(len(replay.like), -1, np.int64)
    row[peers] = np.arange(len(peers))
    theirs = np.flatnonzero((row[layout.rank] >= 0) & (replay.program_position >= 0) & (replay.iteration >= 0))
    grid[row[layout.rank[theirs]], replay.iteration[theirs], replay.program_position[theirs]] = values[theirs]
    median = np.full(shape[1:], np.nan)
    has = ~np.isnan(grid).all(axis=0)
    if has.any():
        median[has] = np.nanmedian(grid[:, has], axis=0)
    return median
