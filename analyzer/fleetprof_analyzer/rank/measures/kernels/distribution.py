"""Durations as counts in fixed buckets, so that distributions of many ranks can be added up in any order.

Bucket k holds [low(k), low(k + 1)): single nanoseconds up to 64 ns, from there 32 buckets per power of two, so a value
is known to 1/32 of itself and the middle of its bucket to 1.6 %. Guarantees: integer arithmetic only; adding is exact,
commutative and associative. (HdrHistogram's layout; its Python package holds a dense array per histogram.)
"""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.report_tables import Histogram

from fleetprof_analyzer.trace.trace import Int64s

_BITS = 6  # of which the first is always 1
_MOST_BUCKETS = 1 << 11  # below 2^53 ns
_SPANS_OF_A_RANK: Final = 24


def bucket_of(durations_ns: Int64s) -> npt.NDArray[np.int32]:
    """The bucket of each duration, shape (n,). Durations are at least 0 and below 2^53."""
    bits = np.frexp(durations_ns.astype(np.float64))[1]
    shift = np.maximum(bits - _BITS, 0)
    return np.asarray((shift << (_BITS - 1)) + (durations_ns >> shift), np.int32)


def low_of(bucket: int) -> int:
    """The smallest duration of a bucket, ns."""
    shift = max((bucket >> (_BITS - 1)) - 1, 0)
    return (bucket - (shift << (_BITS - 1))) << shift


def count_buckets_by(group: Int64s, durations_ns: Int64s) -> dict[int, dict[int, int]]:
    """For each group (from 0 on) how many of its durations lie in each bucket, in the order of groups and buckets."""
    keys, counts = np.unique(group * _MOST_BUCKETS + bucket_of(durations_ns), return_counts=True)
    found: dict[int, dict[int, int]] = {}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        found.setdefault(key // _MOST_BUCKETS, {})[key % _MOST_BUCKETS] = count
    return found


def add_counts(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The sum of several counts, in the order of buckets."""
    total: dict[int, int] = {}
    for part in parts:
        for bucket, count in part.items():
            total[bucket] = total.get(bucket, 0) + count
    return dict(sorted(total.items()))


def quantile(counts: Mapping[int, int], permille: int) -> int:
    """The middle of the bucket that holds the value of rank ceil(permille / 1000 × n), ns; 0 of nothing."""
    wanted = -(-sum(counts.values()) * permille // 1000)
    reached = 0
    for bucket, count in sorted(counts.items()):
        reached += count
        if reached >= wanted:
            return (low_of(bucket) + low_of(bucket + 1) - 1) // 2
    return 0


def to_histogram(counts: Mapping[int, int]) -> Histogram:
    """As the report holds it."""
    return Histogram(from_ns=[low_of(bucket) for bucket in counts], counts=list(counts.values()))


def to_density(counts: Mapping[int, int], low_ns: int, high_ns: int) -> list[int]:
    """Permille of the durations in 24 equal spans from `low_ns` to `high_ns`; empty where these are the same."""
    if high_ns <= low_ns:
        return []
    pieces = ((low_of(bucket), low_of(bucket + 1), count) for bucket, count in counts.items())
    whole = sum(counts.values())
    return [round(1000 * count / whole) for count in count_in_spans(pieces, low_ns, high_ns, _SPANS_OF_A_RANK)]


def list_pieces(histogram: Histogram) -> Iterable[tuple[int, int, int]]:
    """The begin and end of each bucket of a report's histogram, ns, and its count."""
    for begin, count in zip(histogram.from_ns, histogram.counts, strict=True):
        yield begin, begin + (1 << max(0, begin.bit_length() - _BITS)), count


def count_in_spans(pieces: Iterable[tuple[float, float, float]], low_ns: int, high_ns: int, spans: int) -> list[float]:
    """Counts in equal spans from `low_ns` to `high_ns`, where each piece (begin, end, count) is spread evenly."""
    width = (high_ns - low_ns) / spans
    found = [0.0] * spans
    for begin, end, count in pieces:
        first, last = max(0.0, (begin - low_ns) / width), min(float(spans), (end - low_ns) / width)
        for at in range(int(first), ceil(last)):
            found[at] += count * (min(last, at + 1) - max(first, at)) / (last - first)
    return found
