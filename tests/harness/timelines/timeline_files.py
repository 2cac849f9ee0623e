"""Makes timeline files of rows that a test gives, and reads them back."""

from collections.abc import Sequence

import numpy as np
from fleetprof_analyzer.pyramid.writer import write_rank
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.summary import TraceFindings
from fleetprof_analyzer.trace.trace import NO_ROWS, Category, Rows, Trace, TraceMetadata

from harness.timelines.timeline_reader import RankFile

Row = tuple[int, int, int, int]
"""Place, start, duration, number of the name."""


def make_trace(rows: Sequence[Row], category: Category = Category.OPERATOR) -> Trace:
    """A trace of rows of one category."""
    columns = np.array(rows, np.int64).reshape(len(rows), 4)
    nothing = np.full(len(rows), -1, np.int32)
    made = Rows(
        category=np.full(len(rows), category, np.int8),
        name=columns[:, 3].astype(np.int32),
        place=columns[:, 0].astype(np.int32),
        start_ns=columns[:, 1].copy(),
        duration_ns=columns[:, 2].copy(),
        correlation=nothing.astype(np.int64),
        shape=nothing,
        collective=nothing,
        detail=nothing.astype(np.int64),
    )
    places = [("77", str(number)) for number in range(int(columns[:, 0].max()) + 1)]
    names = [f"aten::op{number}" for number in range(int(columns[:, 3].max()) + 1)]
    return Trace(source="rank0.json", metadata=TraceMetadata(), rows=made, names=names, places=places, frames=NO_ROWS)


def write_rows(rows: Sequence[Row], category: Category = Category.OPERATOR) -> bytes:
    """The file of these rows."""
    return write_trace(make_trace(rows, category))


def write_trace(trace: Trace) -> bytes:
    """The file of a trace in which no iteration was found."""
    return write_rank(TraceFindings(trace, split_devices(trace), find_calls(trace), [], [], [], -1, ()), 0)


def read_level(file: RankFile, level: int) -> list[tuple[int, int, int, int, int]]:
    """(lane, start, duration, name, count) of each row that starts in a tile of the level."""
    found = []
    for number, carried in enumerate(file.header.levels[level].tiles.carried):
        tile = file.tile(level, number)
        counts = tile["count"] if "count" in tile else np.ones(len(tile["lane"]), np.int64)
        columns = (tile["lane"], tile["start_ns"], tile["duration_ns"], tile["name"], counts)
        found += list(zip(*(column[carried:].tolist() for column in columns), strict=True))
    return found
