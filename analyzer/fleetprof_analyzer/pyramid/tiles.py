"""Cuts the rows of a level into tiles that are fetched and decoded alone.

A tile ends where it is full, not where a bucket does, so that none is larger than another in a dense part of the trace.
Guarantees: every row is in the tile in which it starts; a tile begins with the row of each lane that began before it
and is still there (carried in), else long rows would vanish at borders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.pyramid.container import Body
from fleetprof_analyzer.pyramid.header import LINKED, MOST_TILE_ROWS, WIDE, LevelHeader, Tiles, tile_types
from fleetprof_analyzer.pyramid.levels import Level
from fleetprof_analyzer.pyramid.planes import shuffle
from fleetprof_analyzer.trace.trace import Int64s

_NARROW: Final = (1 << 31) - 1
_SAMPLE: Final = 65_536
Positions = npt.NDArray[np.intp]
LaneNumbers = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class LaneRows:
    """All rows of a rank by lane and start, columns of shape (n,). Times are ns from the origin.

    Numbers are as narrow as tiles hold them, because every level takes its rows from here.
    `launched_ns` is how long before its start the row was launched, plus one, and 0 where that is not known;
    `launch_lane` is the lane of the call.
    """

    lane: LaneNumbers
    name: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    start_ns: Int64s
    duration_ns: Int64s
    launched_ns: npt.NDArray[np.uint32]
    launch_lane: LaneNumbers
    lanes: int
    names: int


def write_level(rows: LaneRows, level: Level | None, body: Body) -> LevelHeader:
    """Writes the tiles of a level, or of the rows themselves (None), into the body."""
    at = None if level is None else level.at
    lane, start = (rows.lane, rows.start_ns) if at is None else (rows.lane.take(at), rows.start_ns.take(at))
    duration = rows.duration_ns if at is None else rows.duration_ns.take(at)
    borders = _borders(start)
    cuts = _cut(lane, start, borders, rows.lanes)
    order, ends = _order(cuts)
    carried = _carried(cuts, start, duration, borders)
    columns: dict[str, list[int]] = {name: [] for name in Tiles.__struct_fields__}
    for number, border in enumerate(borders.tolist()):
        own = order[ends[number] : ends[number + 1]]
        mine = np.concatenate((carried[number], own)) if len(carried[number]) else own
        lasts = duration.take(mine)
        longest = int(lasts.max())
        positions = mine if at is None else at.take(mine)
        launched = rows.launched_ns.take(positions)
        flags = LINKED if launched.any() else 0
        begins = start.take(mine) - border
        if max(longest, int(begins.max()), -int(begins.min())) > _NARROW:
            flags |= WIDE
        values: dict[str, npt.NDArray[np.generic]] = {
            "lane": lane.take(mine),
            "name": rows.name.take(positions),
            "start_ns": begins,
            "duration_ns": lasts,
        }
        if level is not None:
            share = -(-level.covered_ns.take(mine) * 255 >> level.bucket_bits)
            values |= {
                "count": np.minimum(level.count.take(mine), (1 << 32) - 1),
                "covered": np.clip(share, 1, 255),
            }
        if flags & LINKED:
            values |= {"launched_ns": launched, "launch_lane": rows.launch_lane.take(positions)}
        types = tile_types(flags, rows.lanes, rows.names, raw=level is None)
        block = body.add(shuffle([values[name].astype(kind, copy=False) for name, kind in types.items()]))
        for name, value in (
            ("start_ns", border),
            ("offset", block.offset),
            ("length", block.length),
            ("crc32", block.crc32),
            ("rows", len(mine)),
            ("carried", len(carried[number])),
            ("max_duration_ns", longest),
            ("flags", flags),
        ):
            columns[name].append(value)
    return LevelHeader(bucket_ns=0 if level is None else 1 << level.bucket_bits, rows=len(lane), tiles=Tiles(**columns))


def _borders(start: Int64s) -> Int64s:
    """Starts of the tiles, shape (tiles,): the first at 0, each about full but for the last."""
    # Of large levels a sample tells where tiles become full.
    every = max(1, len(start) // _SAMPLE)
    borders = np.unique(np.sort(start[::every], kind="stable")[:: max(1, MOST_TILE_ROWS // every)])
    borders[0] = 0
    return borders


def find_lanes(lane: LaneNumbers, lanes: int) -> Positions:
    """The positions at which the rows of each lane begin, and the last ones end; shape (lanes + 1,)."""
    # In the column's own type, or all of it would be converted for the search.
    return np.append(np.searchsorted(lane, np.arange(lanes).astype(lane.dtype)), len(lane))


def _cut(lane: LaneNumbers, start: Int64s, borders: Int64s, lanes: int) -> Positions:
    """Positions where the rows of each lane and tile begin, and the lane's last ones end; shape (lanes, tiles + 1)."""
    ends = find_lanes(lane, lanes)
    cuts = np.empty((lanes, len(borders) + 1), np.intp)
    for number, (first, last) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        cuts[number, :-1] = first + np.searchsorted(start[first:last], borders)
        cuts[number, -1] = last
    return cuts


def _order(cuts: Positions) -> tuple[Positions, Positions]:
    """The positions of the rows by tile and lane, and where each tile begins and the last ends among them."""
    lengths = np.diff(cuts, axis=1).T.ravel()
    ends = np.cumsum(lengths)
    order = np.repeat(cuts[:, :-1].T.ravel() - ends + lengths, lengths)
    order += np.arange(len(order))
    return order, np.concatenate(([0], ends[len(cuts) - 1 :: len(cuts)]))


def _carried(cuts: Positions, start: Int64s, duration: Int64s, borders: Int64s) -> Sequence[Positions]:
    """The positions, for each tile, of the rows that began before it and end behind its start, by lane."""
    before = cuts[:, :-1] - 1
    there = before >= cuts[:, :1]
    before = np.where(there, before, 0)
    there &= start[before] + duration[before] > borders
    return [before[mask, number] for number, mask in enumerate(there.T)]
