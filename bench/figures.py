"""What the bench's sections share: a measured figure beside the named figure, and intervals by bootstrap."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, beside the target or the peer of the same run."""

    section: str
    name: str
    value: str
    target: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def quantile(values: list[float], q: float) -> float:
    """The q-quantile by the nearest rank; `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(q * (len(ordered) - 1))))]


def bootstrap_median(
    values: list[float], *, resamples: int = 4000, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(median, low, high) of the values; deterministic."""
    source = random.Random(20261121)
    medians = sorted(median(source.choices(values, k=len(values))) for _ in range(resamples))
    tail = (1 - confidence) / 2
    return median(values), medians[int(tail * resamples)], medians[int((1 - tail) * resamples) - 1]
