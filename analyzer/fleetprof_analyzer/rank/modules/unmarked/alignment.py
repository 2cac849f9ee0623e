"""Aligns two sequences of operations: which of the second is which of the first, where every best alignment says so.

A best alignment leaves the fewest operations of both out; what is left out of one may stand anywhere in the other.
Guarantees: pure; a pair is told only where all best alignments have it, so that of two equal runs of which one is
missing neither is taken for the other; None where the sequences differ too much to be compared at all.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s

_FIRST_BAND: Final = 32
_MOST_DIFFERENCES: Final = 4096
_MOST_CELLS: Final = 30_000_000  # of a table, four bytes each: there are two
_FAR: Final = 1 << 29


@dataclass(frozen=True, slots=True)
class OperationAlignment:
    """The operation of the first sequence that each of the second is, -1 for none; shape (m,).

    Some best alignment has it at, or next to, each of `low` and `high` of the first, and none outside; -1 and n are the
    ends. `is_doubtful`: operations of the first that several of the second could be, shape (n,).
    """

    partner: Int64s
    low: Int64s
    high: Int64s
    is_doubtful: Bools


def align(first: Int64s, second: Int64s) -> OperationAlignment | None:
    """Compares the sequences by their numbers."""
    if np.array_equal(first, second):
        same = np.arange(len(second))
        return OperationAlignment(same, same, same, np.zeros(len(first), np.bool_))
    surplus = len(second) - len(first)
    band = max(_FIRST_BAND, 2 * abs(surplus))
    while True:
        band = min(band, _MOST_DIFFERENCES)
        if (len(first) + 1) * (2 * band + 1) > _MOST_CELLS or abs(surplus) > band:
            return None
        ahead = _count_differences(first, second, band)
        differences = int(ahead[-1, surplus + band])
        if differences <= band:
            behind = _count_differences(first[::-1], second[::-1], band)[::-1, ::-1]
            return _find_pairs(first, second, ahead, behind, band, differences)
        if band == _MOST_DIFFERENCES:
            return None
        band *= 2


def _count_differences(first: Int64s, second: Int64s, band: int) -> Int32s:
    """Operations left out of both up to each pair of places, shape (n + 1, 2 * band + 1).

    The column is the place in the second less that in the first, plus `band`.
    """
    width = 2 * band + 1
    column = np.arange(width, dtype=np.int32)
    table = np.full((len(first) + 1, width), _FAR, np.int32)
    padded = np.full(len(second) + 2 * width, -1, np.int64)  # no operation has that number
    padded[width : width + len(second)] = second
    is_place = np.zeros(len(second) + 1 + 2 * width, np.bool_)
    is_place[width : width + len(second) + 1] = True
    table[0, band:] = column[: width - band]
    table[0, ~is_place[width - band : 2 * width - band]] = _FAR
    for at in range(len(first)):
        before = table[at]
        begin = width + at + 1 - band  # of this row's first column, in the padded sequence
        equal = padded[begin - 1 : begin - 1 + width] == first[at]
        reached = np.where(equal, before, _FAR)
        reached[:-1] = np.minimum(reached[:-1], before[1:] + 1)
        # One more of the second, and one more …
        reached = np.minimum.accumulate(reached - column) + column
        reached[~is_place[begin : begin + width]] = _FAR
        table[at + 1] = reached
    return table


def _find_pairs(
    first: Int64s, second: Int64s, ahead: Int32s, behind: Int32s, band: int, differences: int
) -> OperationAlignment:
    """`behind`: differences from each pair of places to the end, in columns mirrored about those of `ahead`."""
    surplus = len(second) - len(first)
    to_end = np.full_like(ahead, _FAR)
    width = 2 * band + 1
    # Seen from the end, the second is ahead by the surplus less.
    begin, end = max(0, surplus), min(width, width + surplus)
    to_end[:, begin:end] = behind[:, begin - surplus : end - surplus]
    ways = np.zeros(len(second), np.int64)
    partner = np.full(len(second), -1, np.int64)
    low, high = np.full(len(second), len(first), np.int64), np.full(len(second), -1, np.int64)
    count = np.zeros(len(first), np.int64)
    for at in range(len(first) + 1):
        here = ahead[at]
        columns = np.flatnonzero(here[:-1] + 1 + to_end[at, 1:] == differences)
        places = at + columns - band
        ways[places] += 1  # left out here
        low[places], high[places] = np.minimum(low[places], at - 1), at
        if at == len(first):
            break
        columns = np.flatnonzero(here + to_end[at + 1] == differences)
        places = at + columns - band
        places = places[(places >= 0) & (places < len(second))]
        places = places[second[places] == first[at]]
        ways[places] += 1
        partner[places] = high[places] = at
        low[places] = np.minimum(low[places], at)
        count[at] = len(places)
    is_sure = (ways == 1) & (partner >= 0)
    doubtful = count > 0
    doubtful[partner[is_sure]] = False
    return OperationAlignment(np.where(is_sure, partner, -1), low, high, doubtful)
