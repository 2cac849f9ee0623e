"""Reads timeline files as the page does, and refuses those that are not as docs/timeline-format.md says."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from fleetprof_analyzer.pyramid.container import MAGIC, MAJOR, PREAMBLE, Block
from fleetprof_analyzer.pyramid.fleet import CELL_TYPES, MOST_CELLS, MOST_MOMENTS, FleetHeader
from fleetprof_analyzer.pyramid.header import (
    CLASSES,
    FLEET_FORM,
    LINKED,
    MOST_LANES,
    MOST_TILES,
    NODE_TYPES,
    RANK_FORM,
    STAGES,
    WIDE,
    LevelHeader,
    RankHeader,
    Tiles,
    tile_types,
)
from fleetprof_analyzer.pyramid.names import MOST_NAMES
from fleetprof_analyzer.pyramid.nodes import MOST_NODES

Columns = Mapping[str, npt.NDArray[Any]]
Header = TypeVar("Header", bound=msgspec.Struct)
MOST_HEADER_BYTES: Final = 64 << 20
MOST_BLOCK_BYTES: Final = 64 << 20
_MOST_LEVELS: Final = 32
_MOST_NS: Final = 1 << 53  # what the page's numbers hold


class Unreadable(ValueError):
    """Not a timeline file that can be read here; the message says what is wrong with it."""


class Container:
    """A file as it was read, whole. Raises Unreadable where preamble, header or lengths are not what they say."""

    def __init__(self, data: bytes) -> None:
        if len(data) < PREAMBLE.size:
            raise Unreadable(f"{len(data)} bytes are too few for a timeline")
        magic, major, minor, length, decoded, crc32, body = PREAMBLE.unpack_from(data)
        if magic != MAGIC:
            raise Unreadable("not a timeline: it begins with other bytes")
        if major != MAJOR:
            raise Unreadable(f"a timeline of form {major}.{minor}; this fleetprof reads {MAJOR}: upgrade fleetprof")
        if length > MOST_HEADER_BYTES or decoded > MOST_HEADER_BYTES:
            raise Unreadable(f"a header of {max(length, decoded):,} bytes, {MOST_HEADER_BYTES:,} are allowed")
        if PREAMBLE.size + length + body != len(data):
            raise Unreadable(f"{len(data):,} bytes, its preamble says {PREAMBLE.size + length + body:,}")
        self._body = memoryview(data)[PREAMBLE.size + length :]
        packed = data[PREAMBLE.size : PREAMBLE.size + length]
        self._header = _decompress(packed, decoded, crc32, "the header")

    def header(self, form: type[Header]) -> Header:
        """The header, of this form. Raises Unreadable."""
        try:
            return msgspec.json.decode(self._header, type=form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"the header is not one: {error}"[:300]) from None

    def block(self, block: Block, what: str, expected_bytes: int) -> bytes:
        """A block's bytes, decompressed; there must be `expected_bytes` of them. Raises Unreadable."""
        if min(block.offset, block.length, block.decoded) < 0:
            raise Unreadable(f"{what}: a negative offset or length")
        if block.offset + block.length > len(self._body):
            raise Unreadable(f"{what}: ends behind the file's end")
        if block.decoded != expected_bytes:
            raise Unreadable(f"{what}: {block.decoded:,} bytes, its rows are {expected_bytes:,}")
        if block.decoded > MOST_BLOCK_BYTES or block.length > MOST_BLOCK_BYTES:
            raise Unreadable(f"{what}: {block.decoded:,} bytes, {MOST_BLOCK_BYTES:,} are allowed")
        packed = bytes(self._body[block.offset : block.offset + block.length])
        return _decompress(packed, block.decoded, block.crc32, what)


class RankFile:
    """`rank-<n>.bin`. Raises Unreadable."""

    def __init__(self, data: bytes) -> None:
        self._container = Container(data)
        self.header = self._container.header(RankHeader)
        _check_rank(self.header)

    def tile(self, level: int, number: int) -> Columns:
        """The columns of a tile, `start_ns` from the file's origin; each of shape (rows,). Raises Unreadable."""
        header = self.header.levels[level]
        tiles = header.tiles
        what = f"tile {number} of level {level}"
        rows, flags = tiles.rows[number], tiles.flags[number]
        lanes, names = len(self.header.lanes.track), len(self.header.names.text)
        types = tile_types(flags, lanes, names, raw=header.bucket_ns == 0)
        size = rows * row_bytes(list(types.values()))
        block = Block(offset=tiles.offset[number], length=tiles.length[number], decoded=size, crc32=tiles.crc32[number])
        data = self._container.block(block, what, size)
        columns = dict(zip(types, _unshuffle(data, rows, list(types.values())), strict=True))
        _check_below(columns["lane"], lanes, f"{what}: lane")
        _check_below(columns["name"], names, f"{what}: name")
        if "launch_lane" in columns:
            _check_below(columns["launch_lane"], lanes, f"{what}: lane of a launch")
        if rows and int(columns["duration_ns"].max()) != tiles.max_duration_ns[number]:
            raise Unreadable(f"{what}: the longest row is another than the header says")
        columns["start_ns"] = columns["start_ns"].astype(np.int64) + tiles.start_ns[number]
        return columns

    def nodes(self) -> Columns:
        """The columns of the tree, each of shape (nodes,). Raises Unreadable."""
        nodes = self.header.nodes
        types = list(NODE_TYPES.values())
        data = self._container.block(nodes.block, "the tree", nodes.count * row_bytes(types))
        columns = dict(zip(NODE_TYPES, _unshuffle(data, nodes.count, types), strict=True))
        if (columns["parent"] >= np.arange(nodes.count)).any() or (columns["parent"] < -1).any():
            raise Unreadable("the tree: a node goes before its parent")
        header = self.header
        limits = (
            len(header.iterations.index),
            len(header.stage_pieces.stage),
            len(header.names.text),
            len(header.tracks.kind),
        )
        if (columns["kind"] >= len(limits)).any():
            raise Unreadable("the tree: a node of an unknown kind")
        for kind, limit in enumerate(limits):
            _check_below(columns["item"][columns["kind"] == kind], limit, "the tree: item")
        return columns


class FleetFile:
    """`fleet.bin`. Raises Unreadable."""

    def __init__(self, data: bytes) -> None:
        self._container = Container(data)
        self.header = self._container.header(FleetHeader)
        if self.header.form != FLEET_FORM:
            raise Unreadable(f"a file of form {self.header.form[:60]!r}, not {FLEET_FORM!r}")
        _check_equal(self.header.ranks, "ranks")
        if not 0 <= self.header.cell_count <= MOST_CELLS:
            raise Unreadable(f"{self.header.cell_count:,} iterations, {MOST_CELLS:,} are allowed")
        if not 0 <= self.header.course_count <= MOST_MOMENTS:
            raise Unreadable(f"{self.header.course_count:,} moments of courses, {MOST_MOMENTS:,} are allowed")

    def cells(self) -> Columns:
        """The iterations of all ranks, columns of shape (cells,). Raises Unreadable."""
        types = list(CELL_TYPES.values())
        count = self.header.cell_count
        data = self._container.block(self.header.cells, "the iterations", count * row_bytes(types))
        columns = dict(zip(CELL_TYPES, _unshuffle(data, count, types), strict=True))
        _check_below(columns["row"], len(self.header.ranks.rank), "the iterations: rank")
        return columns

    def courses(self) -> npt.NDArray[np.uint8]:
        """A number of `course_classes` for each moment of each cell, shape (course_count,). Raises Unreadable."""
        count = self.header.course_count
        moments = self.header.moments or [0] * len(self.header.ranks.rank)
        _check_numbers(moments, MOST_MOMENTS, "moments")
        if len(moments) != len(self.header.ranks.rank):
            raise Unreadable("moments: another number than there are ranks")
        if int(np.array(moments, np.int64)[self.cells()["row"]].sum()) != count:
            raise Unreadable("the courses: another number of moments than the iterations have")
        found = np.frombuffer(self._container.block(self.header.courses, "the courses", count), np.uint8)
        _check_below(found, len(self.header.course_classes), "the courses: class")
        return found


def _decompress(packed: bytes, decoded: int, crc32: int, what: str) -> bytes:
    if zlib.crc32(packed) != crc32:
        raise Unreadable(f"{what}: its checksum is wrong")
    inflate = zlib.decompressobj(31)
    try:
        data = inflate.decompress(packed, decoded + 1)
    except zlib.error as error:
        raise Unreadable(f"{what}: {error}") from None
    if len(data) != decoded or not inflate.eof:
        raise Unreadable(f"{what}: it does not hold the {decoded:,} bytes that it says")
    return data


def _unshuffle(data: bytes, rows: int, types: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Columns of `rows` values of these numpy types. `data` has just as many bytes."""
    columns: list[npt.NDArray[Any]] = []
    at = 0
    for kind in types:
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(data, np.uint8, rows * width, at).reshape(width, rows)
        columns.append(np.ascontiguousarray(planes.T).reshape(-1).view(np.dtype(kind).newbyteorder("<")))
        at += rows * width
    return columns


def _check_rank(header: RankHeader) -> None:
    if header.form != RANK_FORM:
        raise Unreadable(f"a file of form {header.form[:60]!r}, not {RANK_FORM!r}")
    for columns, what in (
        (header.tracks, "tracks"),
        (header.lanes, "lanes"),
        (header.names, "names"),
        (header.iterations, "iterations"),
        (header.stage_pieces, "stages"),
    ):
        _check_equal(columns, what)
    lanes, names, count = len(header.lanes.track), len(header.names.text), len(header.iterations.index)
    _check_count(lanes, MOST_LANES, "lanes")
    _check_count(names, MOST_NAMES, "names")
    _check_count(len(header.levels), _MOST_LEVELS, "levels")
    _check_count(header.nodes.count, MOST_NODES, "nodes")
    _check_numbers(header.lanes.track, len(header.tracks.kind), "lanes: track")
    _check_numbers(header.names.cls, len(CLASSES), "names: class")
    _check_numbers(header.stage_pieces.stage, len(STAGES), "stages: stage")
    _check_numbers(header.stage_pieces.iteration, count, "stages: iteration")
    _check_numbers([header.span_ns], _MOST_NS, "span")
    for number, level in enumerate(header.levels):
        _check_level(level, f"level {number}")


def _check_level(level: LevelHeader, what: str) -> None:
    tiles = level.tiles
    _check_equal(tiles, f"{what}: tiles")
    _check_count(len(tiles.start_ns), MOST_TILES, f"{what}: tiles")
    if sum(tiles.rows) - sum(tiles.carried) != level.rows:
        raise Unreadable(f"{what}: its tiles hold another number of rows than it says")
    for column in Tiles.__struct_fields__:
        _check_numbers(getattr(tiles, column), _MOST_NS, f"{what}: {column}")
    _check_numbers(tiles.flags, (WIDE | LINKED) + 1, f"{what}: flags")
    if any(carried > rows for carried, rows in zip(tiles.carried, tiles.rows, strict=True)):
        raise Unreadable(f"{what}: a tile carries more rows than it has")
    if any(one >= other for one, other in zip(tiles.start_ns, tiles.start_ns[1:], strict=False)):
        raise Unreadable(f"{what}: tiles are not in their order")
    if any(rows > MOST_BLOCK_BYTES for rows in tiles.rows):
        raise Unreadable(f"{what}: a tile of {max(tiles.rows):,} rows")


def _check_equal(columns: msgspec.Struct, what: str) -> None:
    lengths = {len(value) for name in columns.__struct_fields__ if isinstance(value := getattr(columns, name), list)}
    if len(lengths) > 1:
        raise Unreadable(f"{what}: columns of unequal length")


def _check_count(count: int, most: int, what: str) -> None:
    if not 0 <= count <= most:
        raise Unreadable(f"{count:,} {what}, {most:,} are allowed")


def _check_numbers(values: Sequence[int], limit: int, what: str) -> None:
    if values and (min(values) < 0 or max(values) >= limit):
        raise Unreadable(f"{what}: a number that is not below {limit:,}")


def _check_below(values: npt.NDArray[Any], limit: int, what: str) -> None:
    if len(values) and int(values.max()) >= limit:
        raise Unreadable(f"{what}: {int(values.max()):,} is not below {limit:,}")


def row_bytes(types: Sequence[str]) -> int:
    """Bytes of one row in columns of these types."""
    return sum(np.dtype(kind).itemsize for kind in types)
