"""Tells a change from noise: which measures differ between two runs of iterations (docs/measures.md#comparisons).

A permutation test of iterations between the runs, with the largest statistic over all measures (Westfall and Young's
maxT), so that the chance of any false alarm in the whole table is held. The statistic is Welch's, its error enlarged by
a floor and by how far neighbouring iterations depend on each other. Guarantees: pure; deterministic (all permutations,
or a fixed seed); no verdict below `FEWEST` iterations a side.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

FEWEST: Final = 4
_MOST_EXACT: Final = 10_000
_RESAMPLES: Final = 9_999
_SEED: Final = 20_261_122
# Part of the iteration time that is added to every error: what is smaller is never a large number of errors.
_FLOOR: Final = 0.001
# Neighbouring iterations are taken to depend on each other this much until they show otherwise, which weighs as much
# as that many iterations.
_USUAL_DEPENDENCE: Final = 0.6
_USUAL_WEIGHT: Final = 20
_MOST_DEPENDENCE: Final = 0.9

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of m measures: mean after − mean before, interval, chance of such a table without a change.

    Shapes (m,). Intervals and `p` hold for all measures together.
    """

    difference: Floats
    low: Floats
    high: Floats
    p: Floats


def find_differences(before: Floats, after: Floats, whole: Floats, level: float) -> Differences | None:
    """Compares iterations by measures, shapes (n, m); `whole`, shape (m,), is what each measure is a part of.

    None below `FEWEST` iterations on either side.
    """
    if min(len(before), len(after)) < FEWEST:
        return None
    values = np.concatenate((before, after))
    chosen = _permutations(len(before), len(after))
    floor = _FLOOR * whole
    largest = np.abs(_statistics(values, chosen, floor)[0]).max(axis=1)
    statistic, difference, error = (part[0] for part in _statistics(values, chosen[:1], floor))
    dependence = np.sqrt(_inflation(before, after))
    measured = np.abs(statistic) / dependence
    # A little slack, so that equal sums in another order count as equal.
    p = (largest[:, None] >= measured * (1 - 1e-9)).mean(axis=0)
    # What is passed by no more than `level` of the permutations: an interval without 0 and p <= level are the same.
    critical = np.sort(largest)[::-1][int(level * len(largest))]
    reach = critical * dependence * error
    return Differences(difference=difference, low=difference - reach, high=difference + reach, p=p)


def _permutations(first: int, second: int) -> npt.NDArray[np.bool_]:
    """The iterations that are taken as the first run's, shape (k, first + second); the real ones come first."""
    count = first + second
    if math.comb(count, first) <= _MOST_EXACT:
        picks = np.array(list(itertools.combinations(range(count), first)))
        chosen = np.zeros((len(picks), count), np.bool_)
        np.put_along_axis(chosen, picks, True, axis=1)
        return chosen
    # Those of the smallest numbers; to find the last of them costs a part of sorting all.
    order = np.random.default_rng(_SEED).random((_RESAMPLES, count))
    last = np.partition(order, first - 1, axis=1)[:, first - 1, None]
    return np.concatenate((np.arange(count)[None] < first, order <= last))


def _statistics(values: Floats, chosen: npt.NDArray[np.bool_], floor: Floats) -> tuple[Floats, Floats, Floats]:
    """Statistic, difference and error of each permutation and measure, shapes (k, m)."""
    first, second = chosen.astype(np.float64), (~chosen).astype(np.float64)
    counts = first.sum(axis=1)[:, None], second.sum(axis=1)[:, None]
    # Distances to the common mean, so that squares lose no digits.
    values = values - values.mean(axis=0)
    sums = first @ values, second @ values
    squares = first @ values**2, second @ values**2
    means = [total / count for total, count in zip(sums, counts, strict=True)]
    variances = [
        np.maximum(square / count - mean**2, 0) / (count - 1)
        for square, count, mean in zip(squares, counts, means, strict=True)
    ]
    error = np.sqrt(variances[0] + variances[1]) + floor
    difference = means[1] - means[0]
    statistic = np.divide(difference, error, out=np.zeros_like(difference), where=error > 0)
    return statistic, difference, error


def _inflation(before: Floats, after: Floats) -> Floats:
    """By how much dependence between neighbouring iterations enlarges the variance of a mean, shape (m,)."""
    residuals = [run - run.mean(axis=0) for run in (before, after)]
    together = sum((run[1:] * run[:-1]).sum(axis=0) for run in residuals)
    apart = sum((run**2).sum(axis=0) for run in residuals)
    found = np.divide(together, apart, out=np.zeros_like(apart), where=apart > 0)
    # The estimate is too low by about (1 + 3 r) / n where the mean is not known.
    count = len(before) + len(after)
    found = np.clip(found + (1 + 3 * found) * 2 / count, 0, _MOST_DEPENDENCE)
    dependence = (count * found + _USUAL_WEIGHT * _USUAL_DEPENDENCE) / (count + _USUAL_WEIGHT)
    return np.asarray((1 + dependence) / (1 - dependence))
