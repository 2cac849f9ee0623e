"""A distribution of durations as bars: how often each length occurred, from the shortest to the longest.

Guarantees: pure; every duration is counted in exactly one bar; equal steps to the right are equal factors of time.
"""

from math import log2
from typing import Final

from fleetprof_api.report.report_tables import Histogram

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
