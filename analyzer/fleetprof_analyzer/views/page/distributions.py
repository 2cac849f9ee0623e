"""A distribution of durations as a small drawing: how often each length occurred, from the shortest to the longest.

Guarantees: every duration is counted in exactly one bar; equal steps to the right are equal factors of time; its
numbers stand beside it.
"""

from math import log2
from typing import Final

from fleetprof_api.quantities import duration
from fleetprof_api.report.report_tables import Histogram, KernelStatistics
from markupsafe import Markup

from fleetprof_analyzer.views import svg

_WIDTH: Final = 160
_HEIGHT: Final = 26
_BARS: Final = 32


def count_bars(histogram: Histogram, bars: int = _BARS) -> list[int]:
    """The number of durations that fall into each of equal factors of time; buckets go where their beginning lies."""
    if not histogram.from_ns:
        return []
    low, high = (log2(max(1, value)) for value in (histogram.from_ns[0], histogram.from_ns[-1]))
    counts = [0] * bars
    for from_ns, count in zip(histogram.from_ns, histogram.counts, strict=True):
        place = 0 if high == low else int((log2(max(1, from_ns)) - low) / (high - low) * (bars - 1))
        counts[place] += count
    return counts


def histogram_chart(kernel: KernelStatistics) -> Markup:
    """Bars from the shortest to the longest duration of a kernel."""
    counts = count_bars(kernel.histogram)
    most = max(counts, default=0)
    width = (_WIDTH - 4) / _BARS
    low, high = duration(kernel.min_ns), duration(kernel.max_ns)
    drawn = [
        svg.rectangle(2 + number * width, _HEIGHT - 1 - tall, width - 0.5, tall, "mark")
        for number, count in enumerate(counts)
        if count and (tall := max(1.0, count * (_HEIGHT - 3) / most))
    ]
    return svg.chart(_WIDTH, _HEIGHT, f"{kernel.count} durations from {low} to {high}", *drawn)
