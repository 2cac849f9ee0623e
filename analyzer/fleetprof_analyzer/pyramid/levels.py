"""The levels of detail: of each lane and bucket of time the longest row, and what it stands for.

The rule is that of Perfetto's viewer: where a bucket holds many rows the longest is kept, with its true start and end,
the number of rows that it stands for, and the share of the bucket that they take. The first of equally long ones is
kept. Guarantees: pure; the counts of a level add up to all rows; a row that is kept at a level is kept at all finer
ones.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.trace import Int64s

_BUCKETS: Final = 1024
_MOST_ROOT_ROWS: Final = 16_384
_STEP: Final = 2  # bits: each level has buckets of a fourth
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Level:
    """Rows that stand for others. `at` are their positions among all rows; `bucket_bits` is log2 of a bucket, ns."""

    bucket_bits: int
    at: Positions
    count: Int64s
    covered_ns: Int64s


def build_levels(lane: npt.NDArray[np.integer[Any]], start_ns: Int64s, duration_ns: Int64s) -> list[Level]:
    """The levels above the rows themselves, the coarsest first. Rows are sorted by lane and start, which is from 0 on.

    None where the rows are few enough to be drawn at once.
    """
    if len(lane) <= _MOST_ROOT_ROWS:
        return []
    apart = _distance(lane, start_ns)
    bits = _finest(apart, int(start_ns.max()))
    levels = [_reduce(apart, duration_ns, bits)]
    most = int((start_ns + duration_ns).max()).bit_length()
    while len(levels[0].at) > _MOST_ROOT_ROWS and bits < most:
        bits += _STEP
        levels.insert(0, _join(levels[0], lane, start_ns, duration_ns, bits))
    return levels


def _distance(lane: npt.NDArray[np.integer[Any]], start_ns: Int64s) -> Int64s:
    """For each row a number from 2^b on where the row before is in another bucket of 2^b ns, or lane; shape (n,)."""
    apart = np.empty(len(lane), np.int64)
    apart[0] = np.iinfo(np.int64).max
    np.bitwise_xor(start_ns[1:], start_ns[:-1], out=apart[1:])
    apart[1:][lane[1:] != lane[:-1]] = np.iinfo(np.int64).max
    return apart


def _finest(apart: Int64s, last_start: int) -> int:
    """log2 of the finest bucket where half of the kept rows still stand for more than one."""
    bits = max(0, last_start.bit_length() - _BUCKETS.bit_length() + 1)
    while bits >= _STEP:
        begins = apart >= 1 << (bits - _STEP)
        # Alone: it begins a bucket, and so does the row behind it.
        alone = np.count_nonzero(begins[:-1] & begins[1:]) + int(begins[-1])
        if 2 * alone > np.count_nonzero(begins):
            break
        bits -= _STEP
    return bits


def _reduce(apart: Int64s, duration_ns: Int64s, bits: int) -> Level:
    """The level of this bucket, made of the rows themselves."""
    firsts = np.flatnonzero(apart >= 1 << bits)
    return Level(
        bits,
        _longest(duration_ns, firsts),
        np.diff(firsts, append=len(apart)),
        np.add.reduceat(duration_ns, firsts),
    )


def _join(finer: Level, lane: npt.NDArray[np.integer[Any]], start_ns: Int64s, duration_ns: Int64s, bits: int) -> Level:
    """The level of this bucket, made of the next finer one: the longest of the longest."""
    firsts = np.flatnonzero(_distance(lane.take(finer.at), start_ns.take(finer.at)) >= 1 << bits)
    return Level(
        bits,
        finer.at[_longest(duration_ns.take(finer.at), firsts)],
        np.add.reduceat(finer.count, firsts),
        np.add.reduceat(finer.covered_ns, firsts),
    )


def _longest(duration_ns: Int64s, firsts: Positions) -> Positions:
    """The position of the first longest row of each group, which begin at `firsts`."""
    longest = np.maximum.reduceat(duration_ns, firsts)
    hits = np.flatnonzero(duration_ns == np.repeat(longest, np.diff(firsts, append=len(duration_ns))))
    return hits[np.searchsorted(hits, firsts)]
