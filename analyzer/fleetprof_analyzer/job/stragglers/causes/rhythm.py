"""Ranks that pause in every n-th iteration: checkpoints, logging, evaluation on one rank only.

A rhythm tells more than so many outliers: chance hits any iteration. Guarantees: pure; no rank is suspected whose
pauses are those of a turn that goes around the ranks.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate, relative_excess
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.trace.trace import Bools

_LEAST_TURNS: Final = 3
_SHORTEST: Final = 2
_LEAST_EXCESS: Final = 0.1  # of the own time
_CLEARLY: Final = 1.5  # over all that is not in the rhythm
_MOST_OF: Final = 0.6  # of all that exceeds


def find_rhythm(late: Bools, numbers: list[int]) -> int | None:
    """n where the late iterations are each n-th one, n at least 2; None without such a rhythm.

    `numbers` of the iterations, shape (K,). Takes three late ones, and none that is missing or out of turn.
    """
    at = np.array(numbers)[late]
    steps = np.diff(at)
    if len(at) < _LEAST_TURNS or steps.min() < _SHORTEST or steps.min() != steps.max():
        return None
    every = int(steps[0])
    # Before the first and behind the last there is no room for another one; what lies before the window's first
    # collective was not recorded.
    return every if at[0] - numbers[0] <= every and numbers[-1] - at[-1] < every else None


def add_rhythmic(table: OwnTime, candidates: list[Candidate], numbers: list[int]) -> list[Candidate]:
    """The candidates; those that pause in a rhythm with it, and those that only their rhythm shows."""
    excess, has_peers = relative_excess(table, table.own_ns)
    found: dict[int, tuple[int, Candidate]] = {}
    for rank in np.flatnonzero(has_peers).tolist():
        late = _outstanding(excess, rank)
        every = None if late is None else find_rhythm(late, numbers)
        if late is not None and every is not None:
            share = float(excess[rank][late].mean())
            found[rank] = every, Candidate(rank, "intermittent", share, late)
    alone = {
        rank: candidate
        for rank, (every, candidate) in found.items()
        if not any(
            other != rank and table.role[other] == table.role[rank] and found[other][0] == every for other in found
        )
    }
    kept = [alone.pop(one.rank) if one.rank in alone and one.by == "peers" else one for one in candidates]
    known = {candidate.rank for candidate in kept}
    return kept + [candidate for rank, candidate in alone.items() if rank not in known]


def _outstanding(excess: Floats, rank: int) -> Bools | None:
    """The iterations in which a rank is late by far more than in its others, and than any other rank ever is."""
    mine = excess[rank]
    late = mine > max(float(mine.max()) / 2, _LEAST_EXCESS)
    if not late.any():
        return None
    least = float(mine[late].min())
    rest = np.concatenate((mine[~late], np.delete(excess, rank, axis=0).ravel()))
    if len(rest) and least < _CLEARLY * float(rest.max()):
        return None
    return late if mine[late].sum() >= _MOST_OF * mine[mine > 0].sum() else None
