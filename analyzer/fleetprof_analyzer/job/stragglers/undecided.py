"""Candidates where nobody is named: who may be late all the same, and how small a fault would have shown.

Guarantees: pure; an absence is not stated where noise leaves it open.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

import numpy as np
from fleetprof_api.report.stragglers import Undecided

from fleetprof_analyzer.job.stragglers.lateness.excess import least_excess_ns
from fleetprof_analyzer.job.stragglers.lateness.margins import UNSURE, Margins, measure_margins
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime

_LARGE_GAIN: Final = 0.3
"""Noise that would hide so much of the iteration leaves no room for the word nobody."""
LOW_FLOOR: Final = 0.05
"""Of an iteration: a report that would not show more than this says what would lower it."""
_MOST_ITERATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Power:
    """The faults that the iterations at hand leave open; ranks are positions.

    `candidate` stands out so far that noise alone seldom does it; `hidden` only most, where noise would hide a large
    fault.
    """

    candidate: Undecided | None
    smallest_gain: float | None
    hidden: Undecided | None = None
    lasting_gain: float | None = None  # what of `smallest_gain` no number of iterations lowers
    low_floor_iterations: int | None = None  # that lower `smallest_gain` to LOW_FLOOR, where a thousand do

    @property
    def hides_all(self) -> bool:
        """Tells whether noise would hide even a large fault, so that nobody may be said to be late or not."""
        return self.smallest_gain is not None and self.smallest_gain >= _LARGE_GAIN


def find_power(table: OwnTime, iteration_ns: float, least_gain: float, cleared: set[int]) -> Power:
    """Shares are of `iteration_ns`. `cleared` are ranks (positions) whose excess has another explanation."""
    margins = measure_margins(table)
    if iteration_ns <= 0:
        return Power(None, None)
    least = np.maximum(least_excess_ns(table, margins), least_gain * iteration_ns)
    smallest = margins.smallest_told_ns(least) / iteration_ns
    if not isfinite(smallest):
        return Power(None, None)

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

    lasting = float(np.median(least[np.isfinite(margins.error_ns) & np.isfinite(least)])) / iteration_ns
    power = Power(
        describe(margins.suspect(least)), smallest, lasting_gain=lasting,
        low_floor_iterations=_count_iterations(margins, least, LOW_FLOOR * iteration_ns),
    )  # fmt: skip
    return replace(power, hidden=describe(margins.foremost(least))) if power.hides_all else power


def _count_iterations(margins: Margins, least: Floats, floor_ns: float) -> int | None:
    """The iterations that would show a rank that takes `floor_ns` beyond its peers; None where a thousand would not."""
    needed = margins.iterations
    while margins.after(needed).smallest_told_ns(least) > floor_ns:
        needed = max(needed + 1, round(1.05 * needed))
        if needed > _MOST_ITERATIONS:
            return None
    return needed
