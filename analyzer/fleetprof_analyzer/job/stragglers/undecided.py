"""Where nobody is named: who may be late all the same, and how small a fault would have shown.

Guarantees: pure; an absence is not stated where noise leaves it open.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from fleetprof_api.report.stragglers import Undecided

from fleetprof_analyzer.job.stragglers.lateness.excess import least_excess_ns
from fleetprof_analyzer.job.stragglers.lateness.margins import UNSURE, measure_margins
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime


@dataclass(frozen=True, slots=True)
class Power:
    """What the iterations at hand leave open; `candidate.rank` is a position."""

    candidate: Undecided | None
    smallest_gain: float | None


def find_power(table: OwnTime, iteration_ns: float, least_gain: float, cleared: set[int]) -> Power:
    """Shares are of `iteration_ns`. `cleared` are ranks (positions) whose excess has another explanation."""
    margins = measure_margins(table)
    if iteration_ns <= 0:
        return Power(None, None)
    least = np.maximum(least_excess_ns(table, margins), least_gain * iteration_ns)
    smallest = margins.smallest_told_ns(least) / iteration_ns
    rank = margins.suspect(least)
    candidate = None
    if rank is not None and rank not in cleared:
        reach = margins.reach_ns(UNSURE)[rank]
        mean = margins.mean_ns[rank]
        candidate = Undecided(
            rank=rank,
            gain=float(mean / iteration_ns),
            gain_low=float((mean - reach) / iteration_ns),
            gain_high=float((mean + reach) / iteration_ns),
            iterations=margins.iterations,
            iterations_needed=margins.iterations_needed(rank, float(least[rank])),
        )
    return Power(candidate, smallest if isfinite(smallest) else None)
