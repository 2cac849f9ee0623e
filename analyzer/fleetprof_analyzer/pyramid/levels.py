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
MOST_ROOT_ROWS: Final = 16_384
_STEP: Final = 2  # bits: each level has buckets of a fourth
_APART: Final = 255
_BLOCK: Final = 32_768  # rows that a core's cache holds
_FRACTION_BITS: Final = 52
_EXPONENT_OF_HALF: Final = 1022
Positions = npt.NDArray[np.intp]
Distances = npt.NDArray[np.uint8]


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
    if len(lane) <= MOST_ROOT_ROWS:
        return []
    apart = _distance(lane, start_ns)
    bits = _finest(apart, int(start_ns.max()))
    levels = [_reduce(apart, duration_ns, bits)]
    most = int((start_ns + duration_ns).max()).bit_length()
    while len(levels[0].at) > MOST_ROOT_ROWS and bits < most:
        bits += _STEP
        levels.insert(0, _join(levels[0], lane, start_ns, duration_ns, bits))
    return levels


def _distance(lane: npt.NDArray[np.integer[Any]], start_ns: Int64s) -> Distances:
    """log2 of the narrowest bucket that each row shares with the one before it; `_APART` where there is none."""
    apart = np.empty(len(lane), np.uint8)
    apart[0] = _APART
    for first in range(1, len(lane), _BLOCK):
        here = slice(first, min(first + _BLOCK, len(lane)))
        before = slice(here.start - 1, here.stop - 1)
        # The exponent of a double says how many bits a number has.
        differs = (start_ns[here] ^ start_ns[before]).astype(np.float64).view(np.int64)
        bits = np.maximum((differs >> _FRACTION_BITS) - _EXPONENT_OF_HALF, 0)
        apart[here] = np.where(lane[here] == lane[before], bits, _APART)
    return apart


def _finest(apart: Distances, last_start: int) -> int:
    """log2 of the finest bucket where half of the kept rows still stand for more than one."""
    bits = max(0, last_start.bit_length() - _BUCKETS.bit_length() + 1)
    # A row begins a bucket where it is further apart than that; it is alone where the row behind it begins one, too.
    begins = _count_above(apart)
    alone = _count_above(np.minimum(apart, np.append(apart[1:], np.uint8(_APART))))
    while bits >= _STEP and 2 * alone[bits - _STEP] <= begins[bits - _STEP]:
        bits -= _STEP
    return bits


def _count_above(bits: Distances) -> list[int]:
    """For each number from 0 to `_APART` - 1 how many of these are above it."""
    counts: list[int] = np.cumsum(np.bincount(bits, minlength=_APART + 1)[:_APART]).tolist()
    return [len(bits) - count for count in counts]


def _reduce(apart: Distances, duration_ns: Int64s, bits: int) -> Level:
    """The level of this bucket, made of the rows themselves."""
    firsts = np.flatnonzero(apart > bits)
    return Level(
        bits,
        _longest(duration_ns, firsts),
        np.diff(firsts, append=len(apart)),
        np.add.reduceat(duration_ns, firsts),
    )


def _join(finer: Level, lane: npt.NDArray[np.integer[Any]], start_ns: Int64s, duration_ns: Int64s, bits: int) -> Level:
    """The level of this bucket, made of the next finer one: the longest of the longest."""
    firsts = np.flatnonzero(_distance(lane.take(finer.at), start_ns.take(finer.at)) > bits)
    return Level(
        bits,
        finer.at[_longest(duration_ns.take(finer.at), firsts)],
        np.add.reduceat(finer.count, firsts),
        np.add.reduceat(finer.covered_ns, firsts),
    )


def _longest(duration_ns: Int64s, firsts: Positions) -> Positions:
    """The position of the first longest row of each group, which begin at `firsts`."""
    longest = np.maximum.reduceat(duration_ns, firsts)
    counts = np.diff(firsts, append=len(duration_ns))
    hits = np.flatnonzero(duration_ns == np.repeat(longest, counts))
    if len(hits) == len(firsts):
        return hits
    # More hits than groups: of those of one group the first.
    group = np.repeat(np.arange(len(firsts), dtype=np.int32), counts).take(hits)
    return hits.compress(np.append(True, group[1:] != group[:-1]))
