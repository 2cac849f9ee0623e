"""The summary of many durations: their count, sum, extremes, spread and distribution, which add up over ranks.

Guarantees: pure; counts and sums are exact; adding does not depend on the order of the parts.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Annotated, Final, TypedDict

import msgspec
import numpy as np
from fleetprof_api.report.report_tables import Histogram
from msgspec import Meta

from fleetprof_analyzer.rank.measures.kernels.distribution import add_counts, count_buckets_by, quantile, to_histogram
from fleetprof_analyzer.trace.trace import Int64s

_HIGHEST_BUCKET: Final = 1 << 13


class Distribution(TypedDict):
    """The fields that the report has of durations, ns but for the count."""

    count: int
    total_ns: int
    mean_ns: int
    min_ns: int
    max_ns: int
    deviation_ns: int
    p25_ns: int
    p50_ns: int
    p75_ns: int
    p99_ns: int
    histogram: Histogram


class Durations(msgspec.Struct, kw_only=True, frozen=True):
    """At least one duration; `spread` is the sum of squared distances from the mean, ns²."""

    count: Annotated[int, Meta(ge=1)]
    total_ns: Annotated[int, Meta(ge=0)]
    min_ns: Annotated[int, Meta(ge=0)]
    max_ns: Annotated[int, Meta(ge=0)]
    spread: Annotated[float, Meta(ge=0)]
    buckets: dict[Annotated[int, Meta(ge=0, le=_HIGHEST_BUCKET)], Annotated[int, Meta(ge=1)]]

    @property
    def mean_ns(self) -> float:
        """The mean, ns."""
        return self.total_ns / self.count

    @property
    def deviation_ns(self) -> float:
        """The standard deviation of all of them, ns."""
        return sqrt(self.spread / self.count)

    def quantile_ns(self, permille: int) -> int:
        """A quantile, as exact as the buckets are, ns."""
        return min(max(quantile(self.buckets, permille), self.min_ns), self.max_ns)

    def describe(self) -> Distribution:
        """As the report's tables have it: the mean cut to whole ns, quantiles as exact as the buckets."""
        return Distribution(
            count=self.count,
            total_ns=self.total_ns,
            mean_ns=self.total_ns // self.count,
            min_ns=self.min_ns,
            max_ns=self.max_ns,
            deviation_ns=round(self.deviation_ns),
            p25_ns=self.quantile_ns(250),
            p50_ns=self.quantile_ns(500),
            p75_ns=self.quantile_ns(750),
            p99_ns=self.quantile_ns(990),
            histogram=to_histogram(self.buckets),
        )


def add_durations(parts: Sequence[Durations]) -> Durations:
    """All of the parts, at least one, together."""
    parts = sorted(parts, key=lambda part: (part.count, part.total_ns, part.min_ns, part.max_ns, part.spread))
    count, total = sum(part.count for part in parts), sum(part.total_ns for part in parts)
    mean = total / count
    return Durations(
        count=count,
        total_ns=total,
        min_ns=min(part.min_ns for part in parts),
        max_ns=max(part.max_ns for part in parts),
        # Within each part, and of the parts' means around the common one.
        spread=sum(part.spread + part.count * (part.mean_ns - mean) ** 2 for part in parts),
        buckets=add_counts(part.buckets for part in parts),
    )


def sum_by_group(group: Int64s, duration_ns: Int64s) -> dict[int, Durations]:
    """The durations of each group that has any; groups are numbers from 0 to 65,535, shape (n,) like the durations."""
    # A stable sort of 16 bits is one of counting.
    order = np.argsort(group.astype(np.uint16), kind="stable")
    group, duration = group[order], duration_ns[order]
    used, first, count = np.unique(group, return_index=True, return_counts=True)
    total = np.add.reduceat(duration, first)
    distance = duration - np.repeat(total / count, count)
    spread = np.add.reduceat(distance * distance, first)
    shortest, longest = np.minimum.reduceat(duration, first), np.maximum.reduceat(duration, first)
    buckets = count_buckets_by(group, duration)
    columns = (column.tolist() for column in (used, count, total, shortest, longest, spread))
    return {
        number: Durations(
            count=rows, total_ns=total_ns, min_ns=min_ns, max_ns=max_ns, spread=squares, buckets=buckets[number]
        )
        for number, rows, total_ns, min_ns, max_ns, squares in zip(*columns, strict=True)
    }
