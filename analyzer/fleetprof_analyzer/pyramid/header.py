"""The header of a timeline file (docs/timeline-format.md): the one place for its names.

All times are ns from the file's `origin_ns`, which is a text because it passes what JavaScript's numbers hold.
"""

from typing import Final, Literal

import msgspec

from fleetprof_analyzer.pyramid.container import Block

RANK_FORM: Final = "fleetprof-timeline-rank"
FLEET_FORM: Final = "fleetprof-timeline-fleet"

CLASSES: Final = (
    "compute",
    "communication_exposed",
    "communication_overlapped",
    "memory",
    "data_loading",
    "host",
    "optimizer",
)
STAGES: Final = ("data_loading", "forward", "loss", "backward", "zero_grad", "optimizer", "host", "other")

# Types of a tile's columns by what its level and flags say.
WIDE: Final = 1  # times take eight bytes
LINKED: Final = 2  # rows say when and on which lane they were launched
MOST_TILE_ROWS: Final = 8192
MOST_TILES: Final = 100_000
MOST_LANES: Final = 65_536


class Tracks(msgspec.Struct, frozen=True, kw_only=True):
    """Streams and threads, columns of equal length. `kind` is "stream" or "thread"; `main` is the main thread."""

    kind: list[str] = []
    owner: list[str] = []  # device or process
    name: list[str] = []  # stream or thread
    main: int = -1


class LaneColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Lanes, columns of equal length: number of the track, depth inside it."""

    track: list[int] = []
    depth: list[int] = []


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Names with their class, columns of equal length. One name of two classes stands twice.

    `short` is the name as people say it, empty where that is `text`; `cls` indexes `CLASSES`.
    """

    text: list[str] = []
    short: list[str] = []
    cls: list[int] = []
    count: list[int] = []
    total_ns: list[int] = []


class Tiles(msgspec.Struct, frozen=True, kw_only=True):
    """The tiles of a level by their start, columns of equal length.

    A tile holds the rows that start in it: from `start_ns` up to the start of the next. Its first `carried` rows began
    before. `flags`: `WIDE`, `LINKED`.
    """

    start_ns: list[int] = []
    offset: list[int] = []
    length: list[int] = []
    crc32: list[int] = []
    rows: list[int] = []
    carried: list[int] = []
    max_duration_ns: list[int] = []
    flags: list[int] = []


class LevelHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A level of detail. `bucket_ns` is 0 for the rows themselves, which stand for nothing but themselves."""

    bucket_ns: int
    rows: int
    tiles: Tiles


class IterationColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Iterations, columns of equal length."""

    index: list[int] = []
    start_ns: list[int] = []
    duration_ns: list[int] = []


class StageColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Pieces of iterations on the main thread, columns of equal length; `stage` indexes `STAGES`.

    `iteration` indexes the columns of iterations.
    """

    iteration: list[int] = []
    stage: list[int] = []
    start_ns: list[int] = []
    duration_ns: list[int] = []


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """The tree of iterations, stages and operators: a block of columns (`NODE_TYPES`), and how many it leaves out."""

    block: Block = Block()
    count: int = 0
    left_out: int = 0


class RankHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of `rank-<n>.bin`. `levels` go from the coarsest to the rows themselves."""

    form: str = RANK_FORM
    made_by: str
    rank: int | None
    source: str
    kind: Literal["gpu", "cpu"]
    origin_ns: str
    time_origin: Literal["unix", "trace"]
    span_ns: int
    rows: int
    left_out: int
    truncated: bool
    whole: bool  # false: the rows themselves are not here, only the levels above them
    classes: tuple[str, ...] = CLASSES
    stages: tuple[str, ...] = STAGES
    tracks: Tracks
    lanes: LaneColumns
    names: Names
    names_left_out: int
    levels: list[LevelHeader]
    iterations: IterationColumns
    stage_pieces: StageColumns
    nodes: Nodes


NODE_TYPES: Final = {
    "parent": "i4",
    "kind": "u1",
    "item": "u4",
    "start_ns": "i8",
    "duration_ns": "i8",
    "below": "u4",
    "device_ns": "i8",
}


def tile_types(flags: int, lanes: int, names: int, *, raw: bool) -> dict[str, str]:
    """The columns of a tile in their order, with their numpy types."""
    times = ("i8", "u8") if flags & WIDE else ("i4", "u4")
    lane = "u1" if lanes <= 1 << 8 else "u2"
    types = {"lane": lane, "name": "u2" if names <= 1 << 16 else "u4", "start_ns": times[0], "duration_ns": times[1]}
    if not raw:
        types |= {"count": "u4", "covered": "u1"}
    if flags & LINKED:
        types |= {"launched_ns": "u4", "launch_lane": lane}
    return types
