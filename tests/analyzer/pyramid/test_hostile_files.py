"""A file from outside is checked before anything is allocated for what it claims, and refused in words."""

import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.pyramid.container import (
    MAGIC,
    MOST_HEADER_BYTES,
    PREAMBLE_BYTES,
    Body,
    Container,
    Unreadable,
    pack,
)
from fleetprof_analyzer.pyramid.header import RankHeader
from fleetprof_analyzer.pyramid.reader import FleetFile, RankFile
from harness.timelines.timeline_files import write_rows
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = write_rows([(n % 2, n * 10, 9, n % 3) for n in range(100)])


def rewritten(change: Callable[[dict[str, Any]], None], form: type[msgspec.Struct] = RankHeader) -> bytes:
    """The good file with another header, whose checksum is right."""
    header = msgspec.json.decode(msgspec.json.encode(Container(GOOD).header(RankHeader)))
    change(header)
    length = struct.unpack_from("<I", GOOD, 8)[0]
    made = pack(msgspec.defstruct("Any", [(name, Any) for name in header])(*header.values()), Body())
    preamble, packed = made[:PREAMBLE_BYTES], made[PREAMBLE_BYTES:]
    body = GOOD[PREAMBLE_BYTES + length :]
    return preamble[:-8] + struct.pack("<Q", len(body)) + packed + body


def read_all(data: bytes) -> None:
    """Reads all that a file has."""
    file = RankFile(data)
    for level, header in enumerate(file.header.levels):
        for number in range(len(header.tiles.rows)):
            file.tile(level, number)
    file.nodes()


def tile(name: str, value: int) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        header["levels"][-1]["tiles"][name][0] = value

    return change


def test_the_good_one_is_read() -> None:
    read_all(GOOD)
    read_all(rewritten(lambda header: None))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "too few"),
        (b"PK\3\4" + GOOD[4:], "begins with other bytes"),
        (MAGIC + struct.pack("<H", 2) + GOOD[6:], "form 2.0; this fleetprof reads 1: upgrade"),
        (GOOD[:8] + struct.pack("<I", 1 << 31) + GOOD[12:], "are allowed"),
        (GOOD[:12] + struct.pack("<I", MOST_HEADER_BYTES + 1) + GOOD[16:], "are allowed"),
        (GOOD[:12] + struct.pack("<I", 10) + GOOD[16:], "does not hold the 10 bytes"),
        (GOOD[:16] + b"\0\0\0\0" + GOOD[20:], "the header: its checksum is wrong"),
        (GOOD[:-1], "its preamble says"),
        (GOOD[:20] + struct.pack("<Q", 1 << 63) + GOOD[28:], "its preamble says"),
    ],
    ids=["empty", "magic", "newer", "long header", "bomb", "short header", "checksum", "cut", "long body"],
)
def test_a_wrong_preamble_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        read_all(data)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (tile("offset", 1 << 40), "ends behind the file's end"),
        (tile("offset", -1), "a number that is not below"),
        (tile("length", 1 << 30), "ends behind the file's end"),
        (tile("length", -5), "a number that is not below"),
        (tile("rows", 1 << 34), "hold another number of rows"),
        (tile("carried", 101), "hold another number of rows"),
        (tile("crc32", 1), "checksum is wrong"),
        (tile("flags", 4), "flags"),
        (tile("max_duration_ns", 3), "the longest row is another"),
        (lambda h: h["levels"][-1]["tiles"]["rows"].append(1), "columns of unequal length"),
        (lambda h: h["lanes"].update(track=[0, 7]), "lanes: track"),
        (lambda h: h["names"].update(cls=[0, 1, 200]), "names: class"),
        (lambda h: h["names"]["text"].pop(), "columns of unequal length"),
        (lambda h: [column.pop() for column in h["names"].values()], "is not below"),
        (lambda h: h["nodes"].update(count=1 << 40), "are allowed"),
        (lambda h: h["nodes"].update(count=7), "its rows are"),
        (lambda h: h.update(levels=h["levels"] * 40), "levels"),
        (lambda h: h.update(form="other"), "form 'other'"),
        (lambda h: h.update(span_ns="x"), "the header is not one"),
        (lambda h: h.pop("tracks"), "the header is not one"),
    ],
)
def test_a_wrong_header_is_refused(change: Callable[[dict[str, Any]], None], says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        read_all(rewritten(change))


def test_a_tile_that_says_one_row_more_is_refused() -> None:
    def change(header: dict[str, Any]) -> None:
        header["levels"][-1]["rows"] += 1
        header["levels"][-1]["tiles"]["rows"][0] += 1

    with pytest.raises(Unreadable, match="does not hold"):
        read_all(rewritten(change))


def test_a_rank_is_no_fleet() -> None:
    with pytest.raises(Unreadable, match="the header is not one"):
        FleetFile(GOOD)


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
@settings(deadline=None)
def test_a_damaged_byte_is_noticed_or_harmless(at: int, bits: int) -> None:
    damaged = bytearray(GOOD)
    damaged[at] ^= bits
    try:
        read_all(bytes(damaged))
    except Unreadable:
        return
    # The minor version is the one thing that may differ.
    assert at in (6, 7)


def test_a_block_that_inflates_to_more_than_it_says_ends_there() -> None:
    body = Body()
    block = body.add(bytes(1 << 20))
    container = Container(pack(msgspec.defstruct("Empty", [])(), body))
    with pytest.raises(Unreadable, match="does not hold"):
        container.block(msgspec.structs.replace(block, decoded=10), "it", 10)
