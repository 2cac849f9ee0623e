"""Where nobody is named: who may be late all the same, and how small a fault would have shown.

Guarantees: pure; an absence is not stated where noise leaves it open.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np
from fleetprof_api.report.stragglers import Undecided

from fleetprof_analyzer.job.stragglers.lateness.excess import least_excess_ns
from fleetprof_analyzer.job.stragglers.lateness.margins import UNSURE, measure_margins
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

_LARGE_GAIN: Final = 0.3
"""Noise that would hide so much of the iteration leaves no room for the word nobody."""


@dataclass(frozen=True, slots=True)
class Power:
    """What the iterations at hand leave open; ranks are positions.

    `candidate` stands out so far that noise alone seldom does it; `hidden` only most, where noise would hide a large
    fault.
    """

    candidate: Undecided | None
    smallest_gain: float | None
    hidden: Undecided | None = None


def find_power(table: OwnTime, iteration_ns: float, least_gain: float, cleared: set[int]) -> Power:
    """Shares are of `iteration_ns`. `cleared` are ranks (positions) whose excess has another explanation."""
    margins = measure_margins(table)
    if iteration_ns <= 0:
        return Power(None, None)
    least = np.maximum(least_excess_ns(table, margins), least_gain * iteration_ns)
    smallest = margins.smallest_told_ns(least) / iteration_ns
    gain = smallest if isfinite(smallest) else None

    def describe(rank: int | None) -> Undecided | None:
        if rank is None or rank in cleared:
            return None
        reach = margins.reach_ns(UNSURE)[rank]
        mean = margins.mean_ns[rank]
        return Undecided(
            rank=rank,
            gain=float(mean / iteration_ns),
            gain_low=float((mean - reach) / iteration_ns),
            gain_high=float((mean + reach) / iteration_ns),
            iterations=margins.iterations,
            iterations_needed=margins.iterations_needed(rank, float(least[rank])),
        )

    hides = gain is not None and gain >= _LARGE_GAIN
    return Power(describe(margins.suspect(least)), gain, describe(margins.foremost(least)) if hides else None)
