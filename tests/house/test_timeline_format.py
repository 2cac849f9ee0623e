"""docs/timeline-format.md says what the code writes: every field, every column with its type, every limit."""

import re
from pathlib import Path

import msgspec
import pytest
from fleetprof_analyzer.pyramid import fleet, header
from fleetprof_analyzer.pyramid.container import MAGIC, MAJOR, MINOR, PREAMBLE
from fleetprof_analyzer.pyramid.lanes import MOST_DEPTH, MOST_TRACKS
from fleetprof_analyzer.pyramid.names import MOST_NAMES, OTHERS
from fleetprof_analyzer.pyramid.nodes import MOST_NODES
from fleetprof_analyzer.pyramid.writer import MOST_RAW_ROWS
from harness.timelines.timeline_reader import MOST_HEADER_BYTES

PAGE = (Path(__file__).parents[2] / "docs/timeline-format.md").read_text()


def read_types(heading: str) -> dict[str, str]:
    """The types beside each name in the tables behind a heading."""
    section = PAGE.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    return {
        name: row.split("|")[2].strip()
        for row in section.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([a-z_0-9]+)`", row.split("|")[1])
    }


@pytest.mark.parametrize(
    "form",
    [header.RankHeader, header.Tracks, header.LaneColumns, header.Names, header.Tiles, header.IterationColumns,
     header.StageColumns, header.Nodes, fleet.FleetHeader, fleet.FleetRanks],
)  # fmt: skip
def test_every_field_of_a_header_is_described(form: type[msgspec.Struct]) -> None:
    assert [name for name in form.__struct_fields__ if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("heading", "types"),
    [
        ("### Levels and tiles", header.tile_types(0, 10, 10, raw=False)),
        ("### Levels and tiles", header.tile_types(header.LINKED, 10, 10, raw=True)),
        ("### Nodes", header.NODE_TYPES),
        ("## The fleet", fleet.CELL_TYPES),
    ],
)
def test_every_column_has_its_type(heading: str, types: dict[str, str]) -> None:
    columns = read_types(heading)
    wrong = {name: kind for name, kind in types.items() if not columns.get(name, "").startswith((kind, "as `lane`"))}
    assert wrong == {}


def test_wide_columns_have_the_types_that_the_page_says() -> None:
    wide = header.tile_types(header.WIDE, 257, 65_537, raw=True)
    assert wide == {"lane": "u2", "name": "u4", "start_ns": "i8", "duration_ns": "u8"}
    assert header.tile_types(0, 256, 65_536, raw=True)["lane"] == "u1"
    assert header.tile_types(0, 256, 65_536, raw=True)["name"] == "u2"


def test_numbers_and_words_are_those_of_the_code() -> None:
    phrases = [f"`{MAGIC.decode()}`", f"major version, {MAJOR}.", f"minor version, {MINOR}.", OTHERS,
            f"a preamble of {PREAMBLE.size} bytes", f"at most {MOST_HEADER_BYTES >> 20} MiB",
            f"nested deeper than {MOST_DEPTH} or on more than {MOST_TRACKS:,} tracks", f"beyond {MOST_NAMES:,}",
            f"at most {MOST_NODES:,}", f"about {header.MOST_TILE_ROWS:,} rows", f"more than {fleet.MOST_CELLS:,}",
            f"more than {MOST_RAW_ROWS // 1_000_000} million events", f"`{header.RANK_FORM}`", f"`{header.FLEET_FORM}`",
            *(f"`{name}`" for name in header.CLASSES)]  # fmt: skip
    assert [words for words in phrases if words not in PAGE] == []
