"""Which iterations of different ranks are one and the same, where neither their numbers nor sequence numbers say it.

A window may begin or end an iteration earlier on one rank than on the others. Iterations differ in length, and end
together on all ranks: of the right ones, the ends differ by the same everywhere, whatever the clocks show. Guarantees:
pure; without such evidence the windows' ends belong together.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.communication.operations import RankOperations

_MOST_SHIFT: Final = 2  # iterations
_FEWEST: Final = 4  # iterations that must be left
_CLEARER: Final = 0.25  # of the spread that the windows' ends would give
Floats = npt.NDArray[np.float64]


def shifts_by_ends(ranks: list[RankOperations]) -> list[int]:
    """The number to add to each rank's iterations, counted from 0, so that equal numbers are one iteration."""
    first, *others = (_ends(one) for one in ranks)
    return [-len(first), *(_shift(first, ends) - len(ends) for ends in others)]


def _ends(one: RankOperations) -> Floats:
    """When the last operation of each iteration ended, on the rank's clock; nan where it has none."""
    ends = np.full(len(one.iterations), np.iinfo(np.int64).min, np.int64)
    inside = one.columns.iteration >= 0
    np.maximum.at(ends, one.columns.iteration[inside], (one.columns.start_ns + one.columns.duration_ns)[inside])
    known = ends > np.iinfo(np.int64).min
    return np.where(known, ends - ends[known].min() if known.any() else 0, np.nan)


def _shift(first: Floats, ends: Floats) -> int:
    """The number of iterations that a rank is later than by the windows' ends a rank's stand."""
    spreads = {shift: _spread(first, ends, shift) for shift in range(-_MOST_SHIFT, _MOST_SHIFT + 1)}
    best = min(spreads, key=lambda shift: spreads[shift])
    return best if spreads[best] < _CLEARER * spreads[0] else 0


def _spread(first: Floats, ends: Floats, shift: int) -> float:
    """The spread of the differences of the ends, ns; infinite where too few iterations are left."""
    numbers = np.arange(len(first)) - len(first)
    at = numbers - shift + len(ends)
    there = (at >= 0) & (at < len(ends))
    differences = ends[at[there]] - first[there]
    differences = differences[np.isfinite(differences)]
    return float(differences.std()) if len(differences) >= _FEWEST else np.inf
