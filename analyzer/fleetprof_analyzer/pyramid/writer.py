"""Writes the timeline of a rank: all its rows at every level of detail, in one file (docs/timeline-format.md).

Guarantees: pure; equal traces give equal bytes; of more than `MOST_RAW_ROWS` rows only the levels above them are
written, which is said.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api import __version__

from fleetprof_analyzer.pyramid.container import Body, pack
from fleetprof_analyzer.pyramid.header import (
    LINKED,
    STAGES,
    IterationColumns,
    LaneColumns,
    RankHeader,
    StageColumns,
    Tracks,
    tile_types,
)
from fleetprof_analyzer.pyramid.lanes import Lanes, arrange
from fleetprof_analyzer.pyramid.levels import build_levels
from fleetprof_analyzer.pyramid.names import classify, gather_names
from fleetprof_analyzer.pyramid.nodes import Launches, sort_launches, write_nodes
from fleetprof_analyzer.pyramid.tiles import LaneRows, write_level
from fleetprof_analyzer.rank.summary import TraceFindings
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows, Trace

MOST_RAW_ROWS: Final = 8_000_000
MOST_FILE_BYTES: Final = 256 << 20
_MOST_THREADS: Final = 8  # of which it is not known that they train
_MOST_DELAY_NS: Final = (1 << 32) - 2
Bytes = npt.NDArray[np.int8]


def write_rank(found: TraceFindings, rank: int | None) -> bytes:
    """The file of a trace that holds at least one row."""
    trace = found.trace
    category, name, place, start, duration = _columns(trace)
    origin = int(start.min())
    lanes = arrange(place, start - origin, duration)
    del place, start, duration
    category, name = category.take(lanes.order), name.take(lanes.order)
    classes = classify(trace, found.works, category, name, lanes.start_ns + origin, lanes.duration_ns)
    named = gather_names(trace.names, name, classes, lanes.duration_ns)
    del name, classes
    launched, launch_lane = _find_launches(found, lanes, category, origin)
    kinds = tile_types(LINKED, len(lanes.track), len(named.names.text), raw=True)
    rows = LaneRows(
        lane=lanes.lane.astype(kinds["lane"]),
        name=named.name.astype(kinds["name"]),
        start_ns=lanes.start_ns,
        duration_ns=lanes.duration_ns,
        launched_ns=launched,
        launch_lane=launch_lane.astype(kinds["launch_lane"]),
        lanes=len(lanes.track),
        names=len(named.names.text),
    )
    iterations, stages = _find_parts(found, origin)
    body = Body()
    levels = build_levels(rows.lane, rows.start_ns, rows.duration_ns)
    headers = [write_level(rows, level, body) for level in levels]
    whole = len(lanes.order) <= MOST_RAW_ROWS
    if whole:
        headers.append(write_level(rows, None, body))
    threads = _find_threads(found, lanes, category)
    nodes = write_nodes(rows, lanes.track, threads, _launches(rows, lanes), iterations, stages, body)
    header = RankHeader(
        made_by=__version__,
        rank=rank,
        source=trace.source,
        kind="gpu" if (category <= Category.MEMSET).any() else "cpu",
        origin_ns=str(origin),
        time_origin=trace.time_origin,
        span_ns=int((lanes.start_ns + lanes.duration_ns).max()),
        rows=len(lanes.order),
        left_out=lanes.left_out,
        truncated=trace.truncated,
        whole=whole,
        tracks=_describe_tracks(found, lanes, category, threads),
        lanes=_describe_lanes(lanes),
        names=named.names,
        names_left_out=named.left_out,
        levels=headers,
        iterations=iterations,
        stage_pieces=stages,
        nodes=nodes,
    )
    return pack(header, body)


def _columns(trace: Trace) -> tuple[Bytes, npt.NDArray[np.int32], npt.NDArray[np.int32], Int64s, Int64s]:
    """Category, name, place, start and duration of rows and long Python frames."""
    parts: list[Rows] = [trace.rows, trace.frames] if len(trace.frames) else [trace.rows]

    def column(name: str) -> npt.NDArray[np.generic]:
        values = [getattr(part, name) for part in parts]
        return values[0] if len(values) == 1 else np.concatenate(values)

    return column("category"), column("name"), column("place"), column("start_ns"), column("duration_ns")  # type: ignore[return-value]


def _find_launches(
    found: TraceFindings, lanes: Lanes, category: Bytes, origin: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """`launched_ns` and `launch_lane` of all rows."""
    launched = np.zeros(len(lanes.order), np.uint32)
    lane = np.zeros(len(lanes.order), np.int32)
    device = np.flatnonzero(category <= Category.MEMSET)
    if len(device) == 0 or len(found.calls.calls) == 0:
        return launched, lane
    call = found.calls.of(found.trace.rows.take(lanes.order.take(device)))
    known = np.flatnonzero(call >= 0)
    device, call = device.take(known), call.take(known)
    delay = lanes.start_ns.take(device) + origin - found.calls.calls.start_ns.take(call)
    launched[device] = np.where((delay >= 0) & (delay < _MOST_DELAY_NS), delay + 1, 0)
    # The outermost lane of the call's track: with the time it says which row of the track it was.
    first = np.zeros(len(found.trace.places), np.int32)
    tracks, lowest = np.unique(lanes.track, return_index=True)
    first[tracks] = lowest
    lane[device] = first.take(found.calls.calls.place.take(call))
    return launched, lane


def _launches(rows: LaneRows, lanes: Lanes) -> Launches:
    at = np.flatnonzero(rows.launched_ns)
    when = rows.start_ns.take(at) - (rows.launched_ns.take(at).astype(np.int64) - 1)
    return sort_launches(lanes.track.take(rows.launch_lane.take(at)), when, rows.duration_ns.take(at))


def _find_parts(found: TraceFindings, origin: int) -> tuple[IterationColumns, StageColumns]:
    """Iterations and their stages; the times of those that the backward passes bound where nothing marks them."""
    bounds = found.bounds or [(one.start_ns, one.start_ns + one.duration_ns) for one in found.iterations]
    numbers = [one.index for one in found.iterations] or list(range(len(bounds)))
    iterations = IterationColumns(
        index=numbers,
        start_ns=[start - origin for start, _ in bounds],
        duration_ns=[end - start for start, end in bounds],
    )
    pieces = [
        (number, STAGES.index(stage), start - origin, end - start)
        for number, labels in enumerate(found.labels)
        for start, end, stage in sorted(labels)
    ]
    columns = [list(column) for column in zip(*pieces, strict=True)] or [[], [], [], []]
    stages = StageColumns(iteration=columns[0], stage=columns[1], start_ns=columns[2], duration_ns=columns[3])
    return iterations, stages


def _find_threads(found: TraceFindings, lanes: Lanes, category: Bytes) -> list[int]:
    """Places of the threads that train, the main one first; where none is known, those that were busy for longest."""
    there = set(lanes.track.tolist())
    if found.main_place in there:
        return [found.main_place, *(place for place in found.helpers if place in there)]
    outermost = (lanes.depth == 0).take(lanes.lane) & (category > Category.MEMSET)
    place = lanes.track.take(lanes.lane.compress(outermost))
    if len(place) == 0:
        return []
    busy = np.bincount(place, lanes.duration_ns.compress(outermost) + 1)
    return [place for place in np.argsort(-busy, kind="stable")[:_MOST_THREADS].tolist() if busy[place]]


def _describe_tracks(found: TraceFindings, lanes: Lanes, category: Bytes, threads: Sequence[int]) -> Tracks:
    places = lanes.track[lanes.depth == 0].tolist()
    firsts = np.searchsorted(lanes.lane, np.flatnonzero(lanes.depth == 0))
    streams = (category.take(firsts) <= Category.MEMSET).tolist()
    return Tracks(
        kind=["stream" if stream else "thread" for stream in streams],
        owner=[found.trace.places[place][0][:200] for place in places],
        name=[found.trace.places[place][1][:200] for place in places],
        main=places.index(threads[0]) if threads else -1,
    )


def _describe_lanes(lanes: Lanes) -> LaneColumns:
    return LaneColumns(track=(np.cumsum(lanes.depth == 0) - 1).tolist(), depth=lanes.depth.tolist())
