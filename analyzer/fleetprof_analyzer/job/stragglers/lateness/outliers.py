"""Finds ranks that are late again and again: with more of the large outliers than chance gives them.

Robust statistics (medians, median absolute deviations), so that one fault does not widen the measure of the others.
Formulas: docs/measures.md#stragglers. Guarantees: pure; where a rank is not late against its peers it has no outlier.
"""

from collections.abc import Iterator, Sequence
from math import comb
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats
from fleetprof_analyzer.job.stragglers.thresholds import (
    FEW_RANKS,
    FEWEST,
    LEAST,
    LEAST_PAUSE,
    OUTLIER,
    SIGMA,
    USUAL,
    VERY_RARE,
)
from fleetprof_analyzer.trace.trace import Bools

_MOST_BELOW: Final = 0.05
_CHANCE_ALONE: Final = 0.02  # where no other rank has an outlier of that size
_CHANCE_ALONE_OF_FEW: Final = 0.07


def find_outliers(tested: Sequence[Floats]) -> Iterator[tuple[int, Bools, float]]:
    """(rank, the iterations in which it is late, its excess there), once for each of the values that show it.

    All of shape (R, K), shares beyond the peers.
    """
    for excess in tested:
        yield from _find(excess)


def _beyond_usual(excess: Floats) -> Floats:
    """Beyond what the rank has without pauses.

    A rank whose only peer pauses is itself far below it then: that is no level of its own.
    """
    usual = np.maximum(np.quantile(excess, USUAL, axis=1, keepdims=True), -_MOST_BELOW)
    return np.asarray(excess - usual)


def _find(excess: Floats) -> Iterator[tuple[int, Bools, float]]:
    """Each rank is judged at the size of its own outliers: small ones of others say nothing about long pauses."""
    beyond, ranks = _beyond_usual(excess), len(excess)
    limit = max(OUTLIER * SIGMA * measure_deviation(beyond), LEAST_PAUSE)
    # Beside a slow peer a rank is early, and in the other iterations no later than it.
    high = (excess > LEAST) & (beyond > limit)
    for rank in range(ranks):
        mine = beyond[rank][high[rank]]
        if len(mine) < FEWEST:
            continue
        outlier = high & (beyond >= min(float(np.median(mine)) / 2, float(np.sort(mine)[-FEWEST])))
        count, total = int(outlier[rank].sum()), int(outlier.sum())
        alone = _CHANCE_ALONE_OF_FEW if ranks < FEW_RANKS else _CHANCE_ALONE
        if ranks * binomial_tail(total, 1 / ranks, count) < (alone if count == total else VERY_RARE):
            yield rank, outlier[rank], float(beyond[rank][outlier[rank]].mean())


def measure_deviation(values: Floats) -> float:
    """The median absolute deviation."""
    return float(np.median(np.abs(values - np.median(values))))


def binomial_tail(count: int, chance: float, at_least: int) -> float:
    """P(Binomial(count, chance) >= at_least)."""
    return sum(comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(at_least, count + 1))
