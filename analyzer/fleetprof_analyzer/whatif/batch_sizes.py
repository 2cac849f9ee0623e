"""Iteration time and memory by batch size, from captures of the same job at two sizes or more.

An iteration takes R(x) = a x + b, memory is M(x) = c x + d. Guarantees: pure; between half the smallest and twice the
largest size that was seen, else there is no answer. Half an interval adds up, as independent errors: how far the
captures' means may lie from the truth, how far three sizes or more lie from the line, and a share that grows with the
distance from the nearest size that was seen, since no job is a line everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.prediction import PredictedValue, Prediction
from fleetprof_api.report.report import Report

_NORMAL_95: Final = 1.96
_OF_MEDIANS: Final = 1.2533  # standard error of a median over that of a mean
_DEVIATION: Final = 1.4826  # standard deviation over the median distance from the median
_BETWEEN, _BEYOND, _OF_MEMORY = 0.02, 0.06, 0.005
_KNEE: Final = 0.9
_REACH: Final = 2.0
_MOST_APART: Final = 0.05
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SizedCapture:
    """A capture at one batch size: its iterations, mean over the ranks, and its peak of memory where that is known."""

    size: float
    iteration_ns: list[float]
    memory_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class FittedLine:
    """value(x) = slope x + constant, with the relative half width of an interval at each x."""

    sizes: Floats
    values: Floats
    errors: Floats  # of each value, relative, one standard error
    slope: float
    constant: float
    apart: float  # of the values from the line, relative, one standard deviation
    beyond: float
    between: float

    def at(self, size: float) -> PredictedValue:
        """The value at a size, with its interval."""
        value = self.slope * size + self.constant
        weights = _weights(self.sizes, size)
        carried = math.sqrt(float(((weights * self.errors * self.values) ** 2).sum())) / value
        least, most = float(self.sizes.min()), float(self.sizes.max())
        away = max(math.log2(size / most), math.log2(least / size), 0.0)
        inner = 0.0 if away or size in self.sizes else self.between
        model = max(inner, self.beyond * away)
        half = math.sqrt((_NORMAL_95 * carried) ** 2 + (_NORMAL_95 * self.apart) ** 2 + model**2)
        return PredictedValue(value=value, low=value * max(1 - half, 0.0), high=value * (1 + half))


def find_samples(report: Report) -> float | None:
    """Samples of a rank's iteration, where all ranks that say it say the same."""
    sizes = {float(rank.samples_per_iteration) for rank in report.ranks if rank.samples_per_iteration}
    return sizes.pop() if len(sizes) == 1 else None


def sized_capture(report: Report, size: float, memory_bytes: float | None = None) -> SizedCapture:
    """A report's iterations and memory."""
    by_index: dict[int, list[int]] = {}
    for rank in report.ranks:
        for one in rank.iterations:
            if one.complete is not False:
                by_index.setdefault(one.index, []).append(one.duration_ns)
    most = max((len(times) for times in by_index.values()), default=0)
    iterations = [float(np.mean(times)) for _, times in sorted(by_index.items()) if len(times) == most]
    peaks = [peak.allocated_bytes for rank in report.ranks for peak in rank.memory if peak.allocated_bytes]
    return SizedCapture(size, iterations, memory_bytes if memory_bytes is not None else max(peaks, default=None))


def fit_time(captures: Sequence[SizedCapture]) -> FittedLine:
    """R(x), ns. The captures have two sizes or more, and iterations."""
    values, errors = [], []
    for one in captures:
        middle = float(np.median(one.iteration_ns))
        by_median = _DEVIATION * float(np.median(np.abs(np.array(one.iteration_ns) - middle)))
        deviation = max(by_median, float(np.std(one.iteration_ns)))
        values.append(middle)
        errors.append(_OF_MEDIANS * deviation / math.sqrt(len(one.iteration_ns)) / middle)
    return _fit([one.size for one in captures], values, errors, _BEYOND, _BETWEEN)


def fit_memory(captures: Sequence[SizedCapture]) -> FittedLine | None:
    """M(x), bytes; None where it is not known at two sizes."""
    known = [(one.size, one.memory_bytes) for one in captures if one.memory_bytes is not None]
    if len({size for size, _ in known}) < 2:
        return None
    return _fit([size for size, _ in known], [peak for _, peak in known], [0.0] * len(known), _OF_MEMORY, _OF_MEMORY)


def predict_size(captures: Sequence[SizedCapture], size: float, texts: list[str]) -> Prediction:
    """The iteration at another batch size."""
    reason = _refuse(captures, size)
    if reason:
        return Prediction(edits=texts, refused=reason)
    line, memory = fit_time(captures), fit_memory(captures)
    nearest = min(captures, key=lambda one: abs(one.size - size))
    before = float(np.median(nearest.iteration_ns))
    predicted = line.at(size)
    return Prediction(
        edits=texts,
        iteration_ns=predicted,
        change=predicted.value / before - 1,
        throughput_change=(size / predicted.value) / (nearest.size / before) - 1,
        memory_bytes=None if memory is None else memory.at(size),
        rests_on=[
            f"captures at batch sizes {', '.join(f'{one.size:g}' for one in captures)}, compared with the nearest, "
            f"{nearest.size:g}",
            f"R(x) = {line.slope / 1e6:.4g} ms x + {line.constant / 1e6:.4g} ms",
        ],
        doubt="whether time goes on along a line beyond the sizes that were seen"
        if size > max(one.size for one in captures)
        else "how much iterations vary",
    )


def recommend(captures: Sequence[SizedCapture], memory_limit_bytes: float | None) -> tuple[int, str]:
    """(a batch size, why): the least that has nine tenths of the throughput that no size passes, within memory."""
    line, memory = fit_time(captures), fit_memory(captures)
    sizes = [one.size for one in captures]
    knee = _KNEE / (1 - _KNEE) * max(line.constant, 0.0) / line.slope if line.slope > 0 else math.inf
    size, reason = min(
        (knee, f"it has {100 * _KNEE:.0f} % of the throughput that no batch size passes"),
        (_REACH * max(sizes), "throughput still grows there; larger sizes were not seen"),
    )
    if size < min(sizes):
        size, reason = min(sizes), "smaller sizes were not seen, and it has the throughput of larger ones"
    if memory_limit_bytes is not None and memory is not None and memory.slope > 0:
        fits = (memory_limit_bytes - memory.constant) / memory.slope
        why = "more does not fit into memory" if fits >= 1 else "but by the line not even that fits into memory"
        size, reason = min((size, reason), (fits, why))
    if line.apart > _MOST_APART:
        reason += f"; but times lie {100 * line.apart:.0f} % from a line: other work may have disturbed the runs"
    return max(math.floor(size), 1), reason


def _refuse(captures: Sequence[SizedCapture], size: float) -> str:
    sizes = sorted({one.size for one in captures})
    if len(sizes) < 2:
        return "one batch size does not tell how time grows with it: give captures of two sizes or more"
    if any(not one.iteration_ns for one in captures):
        return "a capture holds no whole iteration"
    if not sizes[0] / _REACH <= size <= _REACH * sizes[-1]:
        return (
            f"{size:g} is far from the sizes that were seen ({sizes[0]:g} to {sizes[-1]:g}): from half the smallest to "
            "twice the largest there is an answer"
        )
    return ""


def _fit(sizes: list[float], values: list[float], errors: list[float], beyond: float, between: float) -> FittedLine:
    x, y = np.array(sizes), np.array(values)
    # Relative errors are alike at all sizes.
    slope, constant = np.polyfit(x, y, 1, w=1 / y)
    free = len(x) - 2
    apart = math.sqrt(float((((slope * x + constant) / y - 1) ** 2).sum()) / free) if free > 0 else 0.0
    return FittedLine(x, y, np.array(errors), float(slope), float(constant), apart, beyond, between)


def _weights(sizes: Floats, size: float) -> Floats:
    """The weight that each value has in that of the line at a size."""
    middle = sizes.mean()
    return np.asarray(1 / len(sizes) + (sizes - middle) * (size - middle) / ((sizes - middle) ** 2).sum())
