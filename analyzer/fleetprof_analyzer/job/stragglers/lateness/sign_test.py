"""Ranks of CPU-only jobs that run longer or are blocked longer than all their peers in too many iterations for chance.

On a full machine waits for a core are most of the own time. They come in spells: a rank that lacks a core in one
iteration lacks it in the next as well, so the rank that has most in most iterations need not be at fault. What a thread
runs, and how long it is blocked, comes in no spells, and its sign tells where single long pauses hide the mean.
Guarantees: pure; by the iterations that were sampled on all ranks, without the window's first. Formulas:
docs/measures.md#stragglers.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import relative_excess
from fleetprof_analyzer.job.stragglers.lateness.margins import measure_dependence, measure_inflation
from fleetprof_analyzer.job.stragglers.lateness.outliers import binomial_tail
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime, among_all
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import CLEARLY, LEAST_ON_HOST, RARE
from fleetprof_analyzer.trace.trace import Bools

_LEAST_DEPENDENCE: Final = 1.645  # standard errors, 5 %: what a thread does is not known to come in spells


def find_candidates(_replay: Replay, table: OwnTime) -> list[Candidate]:
    """Candidates by the time that their threads run, and by the time that these are blocked; each rank once."""
    blocked, known = table.blocked_ns(), table.sampled()
    if blocked is None or known is None:
        return []
    # What lies before the window's first collective was not recorded.
    known[0] = False
    ran = np.minimum(table.ran_ns, table.own_ns) * table.stretch(np.broadcast_to(known, table.own_ns.shape))
    found: dict[int, Candidate] = {}
    # A thread runs somewhat longer where it shares its core with another, or has a slower one.
    for values, by, least_more in ((ran, FoundBy.PEERS, CLEARLY), (blocked, FoundBy.BLOCKED, 1.0)):
        for candidate in _find(table, values[:, known], known, by=by, least_more=least_more):
            found.setdefault(candidate.rank, candidate)
    return list(found.values())


def _find(table: OwnTime, values: Floats, known: Bools, *, by: FoundBy, least_more: float) -> list[Candidate]:
    """Candidates by the values, shape (R, n) of the n known iterations, that are so many times their peers'."""
    excess, has_peers = relative_excess(table, values)
    found = []
    for rank in np.flatnonzero(has_peers).tolist():
        peers, middle = table.peers(rank).tolist(), float(np.median(excess[rank]))
        usual = float(np.median(values[peers]))
        if middle < LEAST_ON_HOST or float(np.median(values[rank])) < least_more * usual:
            continue
        if _chance_of_most(values, rank, peers) > RARE:
            continue
        late = among_all(excess[rank] > middle / 2, known)
        found.append(Candidate(rank, LatePattern.PERSISTENT, middle, late, by=by))
    return found


def _chance_of_most(values: Floats, rank: int, peers: list[int]) -> float:
    """That any of ranks that could be exchanged for each other has the most in so many iterations, values (R, K)."""
    role = values[[rank, *peers]]
    most = values[peers].max(axis=0)
    tells = np.maximum(values[rank], most) > 0
    iterations, ahead = int(tells.sum()), int((values[rank] > most)[tells].sum())
    chance = binomial_tail(iterations, 1 / len(role), ahead) ** (1 / _inflation(role - role.mean(axis=0)))
    return len(values) * float(chance)


def _inflation(beyond: Floats) -> float:
    """The number of iterations that tell as much as one, where they resemble their neighbours by more than chance."""
    is_dependent = measure_dependence(beyond) * beyond.shape[1] ** 0.5 > _LEAST_DEPENDENCE
    return measure_inflation(beyond) if is_dependent else 1.0
