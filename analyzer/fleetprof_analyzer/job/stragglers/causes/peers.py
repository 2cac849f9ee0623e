"""The usual values beside a candidate: its peers in the same iterations, or its own other iterations.

Guarantees: pure; nan where nobody says.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime


def usual(table: OwnTime, rank: int, values: Floats) -> Floats:
    """Per iteration, shape (K,): the median of the peers; without peers that of the rank itself."""
    peers = table.peers(rank)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of iterations that nobody says
        if len(peers):
            return np.asarray(np.nanmedian(values[peers], axis=0))
        return np.full(values.shape[1], np.nanmedian(values[rank]))


def excess(
    table: OwnTime, candidate: Candidate, values: Floats, center: Callable[[Floats], Any] = np.mean
) -> tuple[float, float]:
    """(mean in the candidate's late iterations, what is usual there); nan where unknown. `center`: mean or median."""
    if values.shape != table.own_ns.shape:
        return float("nan"), float("nan")
    mine, theirs = values[candidate.rank], usual(table, candidate.rank, values)
    known = candidate.iterations & np.isfinite(mine) & np.isfinite(theirs)
    if not known.any():
        return float("nan"), float("nan")
    return float(center(mine[known])), float(center(theirs[known]))
