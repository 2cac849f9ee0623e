"""The time that each rank takes beyond its peers, how sure it is, and how many iterations would make it sure.

The mean over the iterations of a rank's own time beyond the mean of its peers', with Student's interval, widened for
iterations that resemble their neighbours. Guarantees: pure; a level holds for all ranks together, so that the largest
of many is no more remarkable than it ought to be. Formulas: docs/measures.md#stragglers.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import FEWEST, RARE, SUSPECTED
from fleetprof_analyzer.job.student import student_quantile, student_tail
from fleetprof_analyzer.trace.trace import Bools

UNSURE: Final = 0.01
"""Chance that any of the ranks' intervals misses the truth; half of it, that one of a job without a fault is named."""
_MOST_DEPENDENCE: Final = 0.9
_POWER: Final = 0.842  # of a normal distribution: four of five such jobs are told
_PERSISTENT_Z: Final = 6.5  # errors of a mean that make the least of the persistent test's, whose medians err more
_POWER_OF_SUSPECT: Final = 1.645  # nineteen of twenty, and fewer because luck helped to choose the rank
_MOST_ITERATIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins of R ranks over K iterations: ns of own time per iteration beyond the peers'; nan without peers."""

    mean_ns: Floats  # (R,)
    error_ns: Floats  # (R,): standard error of the mean
    iterations: int

    def reach_ns(self, chance: float) -> Floats:
        """Half the width of the intervals that all hold the truth but for `chance`, shape (R,)."""
        return np.asarray(student_quantile(chance / self._tested(), self.iterations - 1) * self.error_ns)

    def suspect(self, least_ns: Floats) -> int | None:
        """The rank that may well take `least_ns`, shape (R,), and that noise alone seldom makes stand out so far."""
        if self.iterations < FEWEST:
            return None
        rank, errors = self._stands_out_most(least_ns)
        chance = student_tail(errors, self.iterations - 1) / 2 * self._tested()
        return rank if errors > 0 and chance < SUSPECTED else None

    def foremost(self, least_ns: Floats) -> int | None:
        """The rank that stands out most, by more than its own error."""
        rank, errors = self._stands_out_most(least_ns)
        return rank if self.iterations >= FEWEST and errors > 1 else None

    def _stands_out_most(self, least_ns: Floats) -> tuple[int, float]:
        """The rank with most errors of the mean beyond its peers, and how many these are."""
        ratio = np.where(self.error_ns > 0, self.mean_ns / np.maximum(self.error_ns, 1e-9), 0.0)
        ratio = np.where(np.isfinite(ratio) & (self.mean_ns > least_ns), ratio, 0.0)
        rank = int(ratio.argmax())
        return rank, float(ratio[rank])

    def iterations_needed(self, rank: int, least_ns: float) -> int:
        """The number of iterations that would name the rank in most cases.

        The rank that stands out most stands out by luck as well: its mean is taken back by the error's part of it.
        """
        mean, error = float(self.mean_ns[rank]), float(self.error_ns[rank])
        beyond = mean * max(1 - (error / mean) ** 2, 0.0) - least_ns
        single = float(self.error_ns[rank]) * self.iterations**0.5
        needed = self.iterations + 1
        while needed < _MOST_ITERATIONS:
            quantile = student_quantile(UNSURE / self._tested(), needed - 1)
            if beyond > (quantile + _POWER_OF_SUSPECT) * single / needed**0.5:
                break
            needed = max(needed + 1, round(1.05 * needed))
        return needed

    def smallest_told_ns(self, least_ns: Floats) -> float:
        """The time that a rank must take beyond its peers to be named in four of five cases; nan where nobody can.

        By its mean, or in most iterations by a mean that stands out there too.
        """
        known = np.isfinite(self.error_ns) & np.isfinite(least_ns)
        if self.iterations < FEWEST or not known.any():
            return float("nan")
        error, least = self.error_ns[known], least_ns[known]
        by_mean = least + student_quantile(UNSURE / self._tested(), self.iterations - 1) * error
        in_most = np.maximum(
            np.hypot(least, _PERSISTENT_Z * error), student_quantile(RARE, self.iterations - 1) * error
        )
        return float(np.median(np.minimum(by_mean, in_most) + _POWER * error))

    def after(self, iterations: int) -> "Margins":
        """The same noise over so many iterations."""
        return Margins(self.mean_ns, self.error_ns * (self.iterations / iterations) ** 0.5, iterations)

    def _tested(self) -> int:
        return max(int(np.isfinite(self.mean_ns).sum()), 1)


def measure_margins(table: OwnTime) -> Margins:
    """The margins of all ranks."""
    own = table.own_ns.astype(np.float64)
    ranks, count = own.shape
    beyond = np.full((ranks, count), np.nan)
    for rank in range(ranks):
        peers = table.peers(rank)
        if len(peers):
            beyond[rank] = own[rank] - own[peers].mean(axis=0)
    if count < 2:
        return Margins(beyond.mean(axis=1), np.full(ranks, np.nan), count)
    return Margins(beyond.mean(axis=1), _errors(beyond), count)


def stand_out(excess: Floats) -> Bools:
    """Tells whether the mean of each rank's values, of shape (R, K), is beyond noise around 0, shape (R,)."""
    count = excess.shape[1]
    if count < FEWEST:
        return np.zeros(len(excess), np.bool_)
    least = student_quantile(RARE, count - 1) * _errors(excess)
    return np.asarray(excess.mean(axis=1) > least)


def _errors(beyond: Floats) -> Floats:
    """Standard errors of the means of shape (R, K), shape (R,).

    One rank's iterations may be alike by chance: all ranks together tell how noisy the machine is.
    """
    deviation = beyond.std(axis=1, ddof=1)
    known = np.isfinite(deviation)
    if not known.any():
        return np.asarray(deviation)
    cap = 3 * float(np.median(deviation[known]))
    pooled = float(np.sqrt(np.mean(np.minimum(deviation[known], cap) ** 2)))
    error = np.maximum(deviation, pooled) * (measure_inflation(beyond[known]) / beyond.shape[1]) ** 0.5
    return np.where(known, error, np.nan)


def measure_inflation(beyond: Floats) -> float:
    """By how much the likeness of neighbouring iterations enlarges the variance of a mean, shape (R, K)."""
    count = beyond.shape[1]
    if count < FEWEST + 1 or not len(beyond):
        return 1.0
    found = measure_dependence(beyond)
    # The estimate is too low by about (1 + 3 r) / n where the mean is not known.
    dependence = min(max(found + (1 + 3 * found) / count, 0.0), _MOST_DEPENDENCE)
    return float((1 + dependence) / (1 - dependence))


def measure_dependence(beyond: Floats) -> float:
    """The likeness of an iteration to the one before, r of shape (R, K), with the means of the ranks taken off."""
    rest = beyond - beyond.mean(axis=1)[:, None]
    apart = float((rest**2).sum())
    return float((rest[:, 1:] * rest[:, :-1]).sum()) / apart if apart > 0 else 0.0
