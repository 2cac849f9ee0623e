"""Exact arithmetic on sets of time intervals.

Every measure of time here is a length of a union, so that nothing is counted twice and parts add up to the whole.
Guarantees: int64 in, int64 out, no rounding; O(n log n); half-open intervals [start, end).
"""

import numpy as np

from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.trace import Bools, Int64s

Union = tuple[Int64s, Int64s]
"""Disjoint, non-empty, sorted intervals: (starts, ends), both of shape (m,)."""


def union(start: Int64s, end: Int64s) -> Union:
    """The union of n intervals, shapes (n,); empty and reversed ones count as nothing."""
    real = end > start
    if not real.all():
        start, end = start[real], end[real]
    if len(start) == 0:
        return start, end
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        # One after the other: of a million intervals each array that is there at once is 8 MB.
        start = start.take(order)
        end = end.take(order)
        del order
    reach = np.maximum.accumulate(end)
    del end
    begins = np.ones(len(start), np.bool_)
    np.greater(start[1:], reach[:-1], out=begins[1:])
    return start.compress(begins), reach.compress(np.append(begins[1:], True))


def length(intervals: Union) -> int:
    """Total length of a union."""
    starts, ends = intervals
    return int((ends - starts).sum())


def list_spans(intervals: Union) -> list[tuple[int, int]]:
    """The intervals of a union, one by one."""
    return list(zip(*(side.tolist() for side in intervals), strict=True))


def join(first: Union, second: Union) -> Union:
    """The union of two unions."""
    return union(np.concatenate((first[0], second[0])), np.concatenate((first[1], second[1])))


def covered_length(points: Int64s, intervals: Union) -> Int64s:
    """The length of the union before each point, shape (n,)."""
    starts, ends = intervals
    if len(starts) == 0:
        return np.zeros(len(points), np.int64)
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    at = np.searchsorted(starts, points, side="right")
    overshoot = np.maximum(ends[np.maximum(at - 1, 0)] - points, 0)
    return np.asarray(before[at] - np.where(at > 0, overshoot, 0))


def without(intervals: Union, removed: Union) -> Union:
    """The parts of a union that another does not cover."""
    starts, ends = intervals
    if len(starts) == 0 or len(removed[0]) == 0:
        return intervals
    # The borders of both; a piece between two neighbours is inside both or outside.
    borders = distinct(np.concatenate((starts, ends, removed[0], removed[1])))
    keep = (np.diff(covered_length(borders, intervals)) > 0) & (np.diff(covered_length(borders, removed)) == 0)
    return union(borders[:-1].compress(keep), borders[1:].compress(keep))


def covered(points: Int64s, intervals: Union) -> Bools:
    """A mask of the points, shape (n,), that lie in the union."""
    starts, ends = intervals
    if len(starts) == 0:
        return np.zeros(len(points), np.bool_)
    position = np.searchsorted(starts, points, side="right") - 1
    return np.asarray((position >= 0) & (points < ends[np.maximum(position, 0)]))
