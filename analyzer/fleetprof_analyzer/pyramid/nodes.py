"""The tree of a rank: iterations, their stages, and what the threads that train ran in them.

A page opens one node after the other, groups what is small, and says what an operator launched, without a tile.
Guarantees: pure; at most `MOST_NODES`, the longest ones with all that enclose them; what is left out is counted, in
all and below each node. Nodes are in the order of a walk, parents first. An iteration without stages holds a node for
each further thread, so that what ran beside the first one is told from what it did itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.pyramid.container import Body
from fleetprof_analyzer.pyramid.header import NODE_TYPES, IterationColumns, Nodes, StageColumns
from fleetprof_analyzer.pyramid.planes import shuffle
from fleetprof_analyzer.pyramid.tiles import LaneRows, find_lanes
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Int32s, Int64s

MOST_NODES: Final = 20_000
_SAMPLE: Final = 16_384
_ITERATION, _STAGE, _ROW, _THREAD = range(4)
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Launches:
    """Device rows by when and on which track they were launched, sorted by track and time; columns of equal length."""

    track: Int32s
    at_ns: Int64s
    duration_ns: Int64s


def write_nodes(
    rows: LaneRows,
    track_of_lane: Int32s,
    threads: Sequence[int],
    launches: Launches,
    iterations: IterationColumns,
    stages: StageColumns,
    body: Body,
) -> Nodes:
    """Writes the tree of the rows on the tracks `threads`, those of the main thread first, into the body."""
    chosen, left_out = _choose(rows, track_of_lane, threads, iterations, stages)
    start = np.concatenate((iterations.start_ns, stages.start_ns, rows.start_ns[chosen])).astype(np.int64)
    duration = np.concatenate((iterations.duration_ns, stages.duration_ns, rows.duration_ns[chosen])).astype(np.int64)
    groups = len(iterations.index), len(stages.stage), len(chosen)
    kind = np.repeat(np.array([_ITERATION, _STAGE, _ROW], np.uint8), groups)
    item = np.concatenate((np.arange(groups[0]), np.arange(groups[1]), rows.name[chosen])).astype(np.uint32)
    track = np.concatenate((np.full(groups[0] + groups[1], -1), track_of_lane[rows.lane[chosen]])).astype(np.int32)
    found: tuple[npt.NDArray[Any], ...] = (start, duration, kind, item, track)
    beside = _find_threads(start, duration, kind, track, track_of_lane, threads, iterations, stages)
    start, duration, kind, item, track = (
        np.concatenate((np.array(added, column.dtype), column)) for added, column in zip(beside, found, strict=True)
    )
    # A thread lies in its iteration as a row would that encloses all of its rows there, which it goes before.
    as_row = np.minimum(kind, _ROW)
    order = _walk(as_row, start, duration, track, iterations, stages)
    start, duration, kind = start.take(order), duration.take(order), kind.take(order)
    item, track, as_row = item.take(order), track.take(order), as_row.take(order)
    parent = _parents(as_row, start, duration, track)
    columns: dict[str, npt.NDArray[Any]] = {
        "parent": parent,
        "kind": kind,
        "item": item,
        "start_ns": start,
        "duration_ns": duration,
        "below": _below(rows, track_of_lane, threads, kind, start, duration, track),
        "device_ns": _device_time(launches, threads, as_row, start, duration, track),
    }
    block = body.add(shuffle([columns[name].astype(form) for name, form in NODE_TYPES.items()]))
    return Nodes(block=block, count=len(parent), left_out=left_out)


def _choose(
    rows: LaneRows, track_of_lane: Int32s, threads: Sequence[int], iterations: IterationColumns, stages: StageColumns
) -> tuple[Positions, int]:
    """Positions of the longest rows of the threads that begin in an iteration; and how many there are beyond them."""
    begins = np.array(iterations.start_ns, np.int64)
    if len(begins) == 0 or len(threads) == 0:
        return np.zeros(0, np.intp), 0
    ends = begins + np.array(iterations.duration_ns, np.int64)
    bounds = find_lanes(rows.lane, rows.lanes)
    lanes = np.flatnonzero(np.isin(track_of_lane, np.array(threads, np.int32)))
    runs = [
        first + _runs(rows.start_ns[first:last], rows.duration_ns[first:last], begins, ends)
        for first, last in zip(bounds[lanes].tolist(), bounds[lanes + 1].tolist(), strict=True)
    ]
    taken = len(iterations.index) + len(stages.stage) + len(threads[1:]) * len(_bare(iterations, stages))
    return _longest(rows.duration_ns, np.concatenate(runs), max(0, MOST_NODES - taken))


def _find_threads(
    start: Int64s,
    duration: Int64s,
    kind: npt.NDArray[np.uint8],
    track: Int32s,
    track_of_lane: Int32s,
    threads: Sequence[int],
    iterations: IterationColumns,
    stages: StageColumns,
) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[int]]:
    """Start, duration, kind, item and track of the threads but the first in each iteration that has no stages.

    A thread goes from the first of its chosen rows there to the end of the last; `item` is its number among all tracks.
    """
    numbers = {place: number for number, place in enumerate(dict.fromkeys(track_of_lane.tolist()))}
    within = np.searchsorted(np.array(iterations.start_ns, np.int64), start, side="right") - 1
    bare = _bare(iterations, stages)
    found: list[tuple[int, int, int, int, int]] = []
    for thread in threads[1:]:
        mine = np.flatnonzero((kind == _ROW) & (track == thread))
        for iteration in np.intersect1d(within[mine], bare).tolist():
            there = mine[within[mine] == iteration]
            first, last = int(start[there].min()), int((start[there] + duration[there]).max())
            found.append((first, last - first, _THREAD, numbers[thread], thread))
    return tuple(zip(*found, strict=True)) if found else ((), (), (), (), ())  # type: ignore[return-value]


def _bare(iterations: IterationColumns, stages: StageColumns) -> npt.NDArray[np.int64]:
    """Places of the iterations that have no stages."""
    return np.setdiff1d(np.arange(len(iterations.index)), np.array(stages.iteration, np.int64))


def _runs(start: Int64s, duration: Int64s, begins: Int64s, ends: Int64s) -> Positions:
    """The begin and end of a lane's rows within each iteration, shape (iterations, 2)."""
    from_, to = np.searchsorted(start, begins), np.searchsorted(start, ends)
    # Rows of a lane do not overlap, so that only the last one can go on behind the iteration.
    last = np.maximum(to - 1, 0)
    to -= (to > from_) & (start[last] + duration[last] > ends)
    return np.stack((from_, np.maximum(to, from_)), axis=1)


def _longest(duration_ns: Int64s, runs: Positions, most: int) -> tuple[Positions, int]:
    """Positions of the `most` longest rows of the runs, in their order, and how many rows there are beyond them."""
    behind = np.cumsum(runs[:, 1] - runs[:, 0])
    duration = np.concatenate([duration_ns[first:last] for first, last in runs.tolist()])
    if len(duration) <= most:
        chosen = np.arange(len(duration))
    elif most == 0:
        chosen = np.zeros(0, np.intp)
    else:
        # Most rows are short ones, of which a sample tells how short: they need no place in the order.
        sample = np.sort(duration[:: max(1, len(duration) // _SAMPLE)])
        floor = sample[max(0, len(sample) - 1 - 2 * most * len(sample) // len(duration))]
        long = np.flatnonzero(duration >= floor)
        if len(long) < most:
            long = np.arange(len(duration))
        kept = duration.take(long)
        least = np.partition(kept, len(kept) - most)[len(kept) - most]
        longer, equal = np.flatnonzero(kept > least), np.flatnonzero(kept == least)
        # Rows are sorted by lane, so what encloses an equally long row goes before it.
        chosen = long.take(np.sort(np.concatenate((longer, equal[: most - len(longer)]))))
    run = np.searchsorted(behind, chosen, side="right")
    return chosen + (runs[:, 1] - behind)[run], len(duration) - len(chosen)


def _walk(
    kind: npt.NDArray[np.uint8],
    start: Int64s,
    duration: Int64s,
    track: Int32s,
    iterations: IterationColumns,
    stages: StageColumns,
) -> Positions:
    """The order of a walk: an iteration, its first stage, in that one thread after the other, a row before its own."""
    iteration = np.searchsorted(np.array(iterations.start_ns, np.int64), start, side="right")
    stage = np.searchsorted(np.array(stages.start_ns, np.int64), start, side="right")
    thread = np.where(kind == _ROW, track + 1, 0)
    # One number for all that goes before the time: each key more is a sort more.
    group = 2 * iteration + (kind > _ITERATION)
    for key, count in ((stage, len(stages.stage) + 1), (kind, _ROW + 1), (thread, int(thread.max(initial=0)) + 1)):
        group = group * count + key
    return np.lexsort((-duration, start, group))


def _parents(kind: npt.NDArray[np.uint8], start: Int64s, duration: Int64s, track: Int32s) -> Int32s:
    """The number of the node that encloses each, -1 for iterations."""
    number = np.arange(len(kind))
    iteration = np.maximum.accumulate(np.where(kind == _ITERATION, number, -1))
    stage = np.maximum.accumulate(np.where(kind == _STAGE, number, -1))
    staged = stage > iteration
    end = start + duration
    # A row that goes on over several stages, as a mark of the whole iteration does: nothing stands under it.
    spans = (kind == _ROW) & staged & (end > end[stage])
    opens = (kind != _ROW) | spans
    opens[1:] |= (track[1:] != track[:-1]) | spans[:-1]
    first = np.maximum.accumulate(np.where(opens, number, 0))
    row = _enclosing(end)
    group = np.where(staged & ~spans, stage, iteration)
    parent = np.where((row >= first) & (kind[row] == _ROW), row, group)
    parent = np.where((kind == _STAGE) | spans, iteration, parent)
    return np.where(kind == _ITERATION, -1, parent).astype(np.int32)


def _enclosing(end: Int64s) -> Positions:
    """The nearest node before each that ends no earlier, -1 where there is none; shape (n,)."""
    # The latest end of the 1, 2, 4 … nodes up to each: a search that halves its step finds all at once.
    reaches = [end]
    while 1 << len(reaches) < len(end):
        step = 1 << (len(reaches) - 1)
        reach = reaches[-1].copy()
        np.maximum(reach[step:], reaches[-1][:-step], out=reach[step:])
        reaches.append(reach)
    at = np.arange(len(end)) - 1
    for power in reversed(range(len(reaches))):
        at -= (reaches[power].take(np.maximum(at, 0)) < end) << power
        np.maximum(at, -1, out=at)
    return at


def _below(
    rows: LaneRows,
    track_of_lane: Int32s,
    threads: Sequence[int],
    kind: npt.NDArray[np.uint8],
    start: Int64s,
    duration: Int64s,
    track: Int32s,
) -> npt.NDArray[np.uint32]:
    """The number of rows that begin in each node: on its thread, or on all of `threads` in iterations and stages."""
    counts = np.zeros(len(start), np.int64)
    bounds = find_lanes(rows.lane, rows.lanes)
    for thread in threads:
        lanes = np.flatnonzero(track_of_lane == thread)
        first, last = (bounds[lanes[0]], bounds[lanes[-1] + 1]) if len(lanes) else (0, 0)
        times = np.sort(rows.start_ns[first:last], kind="stable")
        mine = (kind < _ROW) | (track == thread)
        inside = np.searchsorted(times, start + duration) - np.searchsorted(times, start)
        counts += np.where(mine, inside - ((kind == _ROW) & (duration > 0)), 0)
    return np.maximum(counts, 0).astype(np.uint32)


def _device_time(
    launches: Launches,
    threads: Sequence[int],
    kind: npt.NDArray[np.uint8],
    start: Int64s,
    duration: Int64s,
    track: Int32s,
) -> Int64s:
    """The time of the device rows that were launched in each node: from its own thread, or from all of `threads`."""
    total = np.zeros(len(start), np.int64)
    for thread in threads:
        first, last = np.searchsorted(launches.track, (thread, thread + 1))
        times = launches.at_ns[first:last]
        sums = np.concatenate(([0], np.cumsum(launches.duration_ns[first:last])))
        inside = sums[np.searchsorted(times, start + duration)] - sums[np.searchsorted(times, start)]
        total += np.where((kind != _ROW) | (track == thread), inside, 0)
    return total


def sort_launches(track: Int32s, at_ns: Int64s, duration_ns: Int64s) -> Launches:
    """Launches in their order."""
    order = order_by(track, at_ns)
    return Launches(track.take(order), at_ns.take(order), duration_ns.take(order))
