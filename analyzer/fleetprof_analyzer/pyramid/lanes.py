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
from fleetprof_analyzer.trace.trace import Int32s, Int64s

MOST_DEPTH: Final = 64
MOST_TRACKS: Final = 1024
Positions = npt.NDArray[np.intp]
Depths = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Rows in the order of their lanes, by start in each: `order` holds their positions, then come their columns."""

    order: Positions
    lane: npt.NDArray[np.uint16]
    start_ns: Int64s
    duration_ns: Int64s
    track: Int32s  # number of the place of each lane
    depth: Int32s  # of each lane
    left_out: int


def arrange(place: Int32s, start_ns: Int64s, duration_ns: Int64s) -> Lanes:
    """The lanes of n rows, columns of shape (n,). Places without rows have no lane."""
    order = np.argsort(place.astype(np.uint16) if len(place) and place.max() < 1 << 16 else place, kind="stable")
    counts = np.bincount(place) if len(place) else np.zeros(0, np.int64)
    used = np.flatnonzero(counts)
    # The busiest places first, so that what is left out is least; then as they are numbered.
    kept = np.sort(used[np.argsort(-counts[used], kind="stable")][:MOST_TRACKS])
    lane = np.empty(len(order), np.uint16)
    start = np.empty(len(order), np.int64)
    duration = np.empty(len(order), np.int64)
    tracks: list[int] = []
    depths: list[int] = []
    ends = np.cumsum(counts)
    filled = 0
    for number in kept.tolist():
        rows = order[ends[number] - counts[number] : ends[number]]
        rows, depth, start_there, duration_there = _by_depth(rows, start_ns.take(rows), duration_ns.take(rows))
        # Never in front of what is still to come: the place's rows end at `ends`.
        there = slice(filled, filled + len(rows))
        order[there], start[there], duration[there] = rows, start_there, duration_there
        np.add(depth, np.uint16(len(tracks)), out=lane[there])
        filled += len(rows)
        deepest = int(depth[-1]) + 1
        tracks += [number] * deepest
        depths += list(range(deepest))
    return Lanes(
        order=order[:filled],
        lane=lane[:filled],
        start_ns=start[:filled],
        duration_ns=duration[:filled],
        track=np.array(tracks, np.int32),
        depth=np.array(depths, np.int32),
        left_out=len(place) - filled,
    )


def _by_depth(rows: Positions, start: Int64s, duration: Int64s) -> tuple[Positions, Depths, Int64s, Int64s]:
    """The rows of one track by depth, then by start."""
    if (start[1:] <= start[:-1]).any():
        sort = order_by(start, -duration)
        rows, start, duration = rows.take(sort), start.take(sort), duration.take(sort)
    depth = _count_open(start, duration)
    if not depth.any():
        return rows, depth, start, duration
    by_depth = np.argsort(depth, kind="stable")
    nested = depth.take(by_depth), start.take(by_depth), duration.take(by_depth)
    crossing = _find_crossing(*nested)
    if len(crossing):
        _place_anew(depth, start, start + np.maximum(duration, 1), by_depth.take(crossing))
        by_depth = np.argsort(depth, kind="stable")
        nested = depth.take(by_depth), start.take(by_depth), duration.take(by_depth)
    depth, start, duration = nested
    shown = len(depth) if depth[-1] < MOST_DEPTH else int(np.searchsorted(depth, MOST_DEPTH))
    return rows.take(by_depth[:shown]), depth[:shown], start[:shown], duration[:shown]


def _count_open(start: Int64s, duration: Int64s) -> Depths:
    """The number of rows before each that are still there, `MOST_DEPTH` at most; starts are sorted.

    That is as deep as it lies where rows nest. What takes no time is drawn all the same, and has its place.
    """
    open_ = np.zeros(len(start) + 1, np.int32)
    # Most rows enclose nothing, so that nobody lies deeper for them.
    outer = np.flatnonzero(start[:-1] + np.maximum(duration[:-1], 1) > start[1:])
    if len(outer):
        open_[outer + 1] = 1
        ends = start.take(outer) + np.maximum(duration.take(outer), 1)
        open_ -= np.bincount(np.searchsorted(start, ends), minlength=len(open_)).astype(np.int32)
        np.cumsum(open_, out=open_)
    return np.minimum(open_[:-1], MOST_DEPTH).astype(np.uint8)


def _find_crossing(depth: Depths, start: Int64s, duration: Int64s) -> Positions:
    """Rows, by depth and start, that begin before the one in front of them in their depth ends; by position."""
    crossing = start[1:] < start[:-1] + np.maximum(duration[:-1], 1)
    crossing &= depth[1:] == depth[:-1]
    crossing &= depth[1:] < MOST_DEPTH
    return np.flatnonzero(crossing) + 1


def _place_anew(depth: Depths, start: Int64s, end: Int64s, crossing: Positions) -> None:
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
