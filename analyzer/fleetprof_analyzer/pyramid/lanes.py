"""Puts the rows of a trace into lanes: a track (a stream, a thread) and a depth of nesting inside it.

Guarantees: pure; rows of one lane do not overlap, so that each can be drawn and found by binary search; a row lies
deeper than those that enclose it; rows that only overlap (kernels of one stream on some devices) take a lane more; what
is nested deeper than `MOST_DEPTH` or lies on more than `MOST_TRACKS` tracks is left out and counted.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s

MOST_DEPTH: Final = 64
MOST_TRACKS: Final = 1024
Positions = npt.NDArray[np.intp]
Depths = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Rows in the order of their lanes, by start in each: `order` holds their positions, then come their columns."""

    order: Positions
    lane: Int32s
    start_ns: Int64s
    duration_ns: Int64s
    track: Int32s  # number of the place of each lane
    depth: Int32s  # of each lane
    left_out: int


def arrange(place: Int32s, start_ns: Int64s, duration_ns: Int64s) -> Lanes:
    """The lanes of n rows, columns of shape (n,). Places without rows have no lane."""
    by_place = np.argsort(place.astype(np.uint16) if len(place) and place.max() < 1 << 16 else place, kind="stable")
    counts = np.bincount(place) if len(place) else np.zeros(0, np.int64)
    used = np.flatnonzero(counts)
    # The busiest places first, so that what is left out is least; then as they are numbered.
    kept = np.sort(used[np.argsort(-counts[used], kind="stable")][:MOST_TRACKS])
    ends = np.cumsum(counts)
    parts: list[tuple[Positions, Int32s, Int64s, Int64s]] = []
    tracks: list[int] = []
    depths: list[int] = []
    for number in kept.tolist():
        rows = by_place[ends[number] - counts[number] : ends[number]]
        rows, depth, start, duration = _by_depth(rows, start_ns.take(rows), duration_ns.take(rows))
        deepest = int(depth[-1]) + 1
        parts.append((rows, depth.astype(np.int32) + np.int32(len(tracks)), start, duration))
        tracks += [number] * deepest
        depths += list(range(deepest))
    if not parts:
        parts = [(np.zeros(0, np.intp), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    order, lane, start, duration = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Lanes(
        order=order,
        lane=lane,
        start_ns=start,
        duration_ns=duration,
        track=np.array(tracks, np.int32),
        depth=np.array(depths, np.int32),
        left_out=len(place) - len(order),
    )


def _by_depth(rows: Positions, start: Int64s, duration: Int64s) -> tuple[Positions, Depths, Int64s, Int64s]:
    """The rows of one track by depth, then by start."""
    if (start[1:] <= start[:-1]).any():
        sort = order_by(start, -duration)
        rows, start, duration = rows.take(sort), start.take(sort), duration.take(sort)
    # What takes no time is drawn all the same, and has its place.
    end = start + np.maximum(duration, 1)
    if (start[1:] >= end[:-1]).all():
        return rows, np.zeros(len(rows), np.uint8), start, duration
    # How many of the rows before each are still there: as deep as it lies where rows nest.
    depth = np.minimum(np.arange(len(start)) - _count_closed(start, end), MOST_DEPTH).astype(np.uint8)
    by_depth = np.argsort(depth, kind="stable")
    placed = depth.take(by_depth), start.take(by_depth), end.take(by_depth)
    overlaps = (placed[0][1:] == placed[0][:-1]) & (placed[1][1:] < placed[2][:-1]) & (placed[0][1:] < MOST_DEPTH)
    if overlaps.any():
        crossing = np.zeros(len(start), np.bool_)
        crossing[by_depth[1:][overlaps]] = True
        _place_anew(depth, start, end, crossing)
        by_depth = np.argsort(depth, kind="stable")
    depth = depth.take(by_depth)
    if depth[-1] >= MOST_DEPTH:
        by_depth = by_depth[: np.searchsorted(depth, MOST_DEPTH)]
        depth = depth[: len(by_depth)]
    return rows.take(by_depth), depth, start.take(by_depth), duration.take(by_depth)


def _count_closed(start: Int64s, end: Int64s) -> Int64s:
    """How many of all ends lie before each start or at it; starts are sorted. A merge, not a search for each."""
    both = np.concatenate((np.sort(end, kind="stable"), start))
    merged = np.argsort(both, kind="stable")
    return np.flatnonzero(merged >= len(end)) - np.arange(len(start))


def _place_anew(depth: Depths, start: Int64s, end: Int64s, crossing: Bools) -> None:
    """Gives the rows of each group that overlaps together the lowest free depth, one by one, where it must."""
    reached = np.maximum.accumulate(end)
    group = np.cumsum(np.concatenate(([False], start[1:] >= reached[:-1])))
    wrong = np.isin(group, np.unique(group[crossing]))
    free_at: list[int] = []
    before = -1
    for position, number, begin, finish in zip(
        np.flatnonzero(wrong).tolist(),
        group[wrong].tolist(),
        start[wrong].tolist(),
        end[wrong].tolist(),
        strict=True,
    ):
        if number != before:
            free_at, before = [], number
        for level, free in enumerate(free_at):
            if free <= begin:
                free_at[level] = finish
                break
        else:
            level = len(free_at)
            # Deeper ones are left out, and take no lane.
            if level < MOST_DEPTH:
                free_at.append(finish)
        depth[position] = level
