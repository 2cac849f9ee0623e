"""All slices of a report by name: the type of each, its bound, and the rule by which its rows are cut.

Guarantees: the analyzer's writer, the JSON Schema, the types of the pages and the rights in the store follow from this
table.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from fleetprof_api.slices import kernels, ranks, tables
from fleetprof_api.slices.head import Head
from fleetprof_api.slices.overview import Overview
from fleetprof_api.slices.slice import Slice

_SCHEMA_ID: Final = "https://fleetprof.io/schemas/slices.v1.schema.json"
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20


class SliceKind(NamedTuple):
    """A slice: its type, the most bytes of its JSON, the most rows of it, and which rows are left out."""

    model: type[Slice]
    most_bytes: int
    most_rows: int
    cut: str


_RANKS: Final = "ranks; those that the verdict names stay, of the others the first ones"
SLICES: Final[Mapping[str, SliceKind]] = {
    "head": SliceKind(Head, 32 * _KIB, 512, "hosts"),
    "overview": SliceKind(Overview, 256 * _KIB, 50, "findings, problems and named ranks; the first stay"),
    "idle": SliceKind(tables.IdleSlice, 128 * _KIB, 200, "iterations; the first stay"),
    "ranks": SliceKind(ranks.RankSlice, 2 * _MIB, 10_000, _RANKS),
    "stragglers": SliceKind(ranks.StragglerSlice, 512 * _KIB, 2_000, "ranks beyond the first, named ones first"),
    "iterations": SliceKind(ranks.IterationSlice, 4 * _MIB, 10_000, _RANKS),
    "stages": SliceKind(tables.StageSlice, 64 * _KIB, 100, "places"),
    "kernels": SliceKind(kernels.KernelSlice, 4 * _MIB, 10_000, "kernels; those with most time stay"),
    "rank_kernels": SliceKind(kernels.RankKernelSlice, 2 * _MIB, 10_000, _RANKS),
    "kernel_spread": SliceKind(kernels.KernelSpreadSlice, 4 * _MIB, 500, "kernels; those with most time stay"),
    "communication": SliceKind(tables.CommunicationSlice, 512 * _KIB, 2_000, "rows; those with most time stay"),
    "launches": SliceKind(tables.LaunchSlice, 2 * _MIB, 10_000, _RANKS),
    "memory": SliceKind(tables.MemorySlice, 512 * _KIB, 2_000, "devices; those with the highest peak stay"),
    "samples": SliceKind(tables.SampleSlice, 4 * _MIB, 256, "ranks; those that the verdict names come first"),
    "modules": SliceKind(tables.ModuleSlice, 2 * _MIB, 10_000, "modules; those that lie deepest go"),
    "whatif": SliceKind(tables.WhatIfSlice, 512 * _KIB, 256, "scenarios; those of one change stay"),
}


def json_schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of all slices, by name."""
    references, definitions = msgspec.json.schema_components(
        [kind.model for kind in SLICES.values()], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _SCHEMA_ID,
        "type": "object",
        "properties": dict(zip(SLICES, references, strict=True)),
        "$defs": definitions,
    }
