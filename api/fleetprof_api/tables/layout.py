"""The tables of a report and their columns: derived from the types of `fleetprof_api.report.report`.

Every list of structs is a table of its own, named by its path without `ranks` and without repeats (`ranks[].devices` is
`devices`); its rows begin with what identifies the row above them. Structs within a row are columns, their names joined
and the unit last (`time_ns.idle` is `time_idle_ns`). Lists of the same length become rows of a long table. What is
outside of lists is the one row of the table `report`. A matrix over lists of the row above is a table with a row per
cell.

Guarantees: names are unique; a column's type, unit and meaning do not depend on any report's content.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect

from fleetprof_api.report.heterogeneity import Heterogeneity, RankTable
from fleetprof_api.report.report import HostSeries, Rank, Report, Series
from fleetprof_api.report.report_tables import Histogram, KernelStatistics
from fleetprof_api.report.stragglers import Straggler
from fleetprof_api.tables.words import meaning_of

ColumnType = Literal["integer", "number", "boolean", "text", "json"]

KEYS: Final[dict[type, tuple[str, ...]]] = {
    Rank: ("rank", "source"),
    KernelStatistics: ("name", "work_class"),
    Straggler: ("rank",),
    HostSeries: ("host_name",),
    Heterogeneity: ("kind",),
    RankTable: ("measure", "unit"),
}
"""Fields that tell a row from its neighbours; of other structs the row's number does."""

LONG: Final[dict[type, dict[str, str]]] = {
    Series: {"at_unix_ns": "at_unix_ns", "values": "value"},
    Histogram: {"from_ns": "from_ns", "counts": "count"},
}
"""Structs that hold columns: their lists, and the names of these as columns."""


class Grid(msgspec.Struct, kw_only=True, frozen=True):
    """A matrix in a struct: its field, and the lists of the row above that its lines and places belong to."""

    field: str
    lines: str
    line: str  # one of `lines`, as a column
    places: str
    place: str
    meaning: str


GRIDS: Final[dict[type, Grid]] = {
    RankTable: Grid(
        field="values",
        lines="ranks",
        line="rank",
        places="iterations",
        place="iteration",
        meaning="Every measure of every rank in every iteration that ranks are compared in",
    ),
}

ONE_ROW: Final = "report"
_UNITS: Final = {
    "_unix_ns": "Unix ns",
    "_ns": "ns",
    "_bytes_per_s": "bytes/s",
    "_bytes": "bytes",
    "_permille": "‰",
    "_megahertz": "MHz",
    "_mj": "mJ",
    "_uj": "µJ",
}
_KINDS: Final[tuple[tuple[type, ColumnType], ...]] = (
    (inspect.BoolType, "boolean"),
    (inspect.IntType, "integer"),
    (inspect.FloatType, "number"),
    (inspect.StrType, "text"),
    (inspect.EnumType, "text"),
    (inspect.LiteralType, "text"),
)


class Column(msgspec.Struct, kw_only=True, frozen=True):
    """One column. `path` leads from the row's struct to the value; keys of the row above have `above` instead."""

    name: str
    type: ColumnType
    lists: int = 0  # how deep its values are nested: 1 is a list per row
    nullable: bool = False
    unit: str = ""
    meaning: str = ""
    path: tuple[str, ...] = ()
    above: int | None = None


class Table(msgspec.Struct, kw_only=True, frozen=True):
    """One table. `path` leads from the report through lists and structs to its rows."""

    name: str
    meaning: str
    path: tuple[str, ...]
    columns: tuple[Column, ...]
    form: Literal["rows", "long", "grid"] = "rows"


@cache
def list_tables() -> tuple[Table, ...]:
    """All tables, in the order of the report; `report` first."""
    report = inspect.type_info(Report)
    assert isinstance(report, inspect.StructType)
    return tuple(_tables(report, "", (), ()))


def unit_of(name: str) -> str:
    """The unit that a column's name says, or ""."""
    return next((unit for suffix, unit in _UNITS.items() if f"_{name}".endswith(suffix)), "")


def join(parent: str, name: str) -> str:
    """The name of a field of a struct: what holds it comes first, the unit last."""
    if not parent:
        return name
    suffix = next((suffix for suffix in _UNITS if parent.endswith(suffix)), "")
    stem = parent.removesuffix(suffix)
    return f"{stem}_{name}" if unit_of(name) else f"{stem}_{name}{suffix}"


def _tables(
    struct: inspect.StructType, described: str, path: tuple[str, ...], above: tuple[Column, ...]
) -> Iterator[Table]:
    """The table of a struct's rows, then those of the lists within it. `described`: the description of the list."""
    below: list[tuple[inspect.StructType, str, tuple[str, ...]]] = []
    name = _table_name(path)
    own = list(_columns(struct, name, (), "", False, below))
    taken = {column.name for column in own}
    keys = [c if c.name not in taken else msgspec.structs.replace(c, name=f"{name}_{c.name}") for c in above]
    yield Table(
        name=name,
        meaning=": ".join(filter(None, (_first_sentence(struct.cls), described))),
        path=path,
        columns=(*keys, *own),
        form="long" if struct.cls in LONG else "rows",
    )
    if struct.cls in GRIDS:
        yield _grid(struct, path, [*keys, *(column for column in own if column.name in KEYS[struct.cls])])
    inherited = (*above, *_keys(struct, own, name, len(above))) if path else ()
    for child, described, way in below:
        yield from _tables(child, described, path + way, inherited)


def _columns(
    struct: inspect.StructType,
    table: str,
    path: tuple[str, ...],
    prefix: str,
    nullable: bool,
    below: list[tuple[inspect.StructType, str, tuple[str, ...]]],
) -> Iterator[Column]:
    """The columns of a struct; lists of structs go to `below`, with the way to them."""
    grid = GRIDS.get(struct.cls)
    for field in struct.fields:
        if grid is not None and field.name == grid.field:
            continue
        kind, described, optional = _plain(field.type)
        way, name = (*path, field.name), join(prefix, field.name)
        item = _plain(kind.item_type)[0] if isinstance(kind, inspect.ListType) else None
        if isinstance(item, inspect.StructType):
            below.append((item, described, way))
        elif isinstance(kind, inspect.StructType) and kind.cls in LONG:
            below.append((kind, described, way))
        elif isinstance(kind, inspect.StructType):
            yield from _columns(kind, table, way, name, nullable or optional, below)
        else:
            long = LONG.get(struct.cls, {}).get(field.name)
            value, lists = _value(kind)
            yield Column(
                name=long or name,
                type=value,
                lists=lists - 1 if long else lists,
                # Lists of one struct may differ in length where somebody else wrote them.
                nullable=nullable or optional or long is not None,
                unit=unit_of(name),
                meaning=meaning_of(table, long or name, field.name, described),
                path=way,
            )


def _grid(struct: inspect.StructType, path: tuple[str, ...], keys: Sequence[Column]) -> Table:
    """The table of a struct's matrix, a row per cell."""
    grid = GRIDS[struct.cls]
    (kind,) = [_plain(field.type)[0] for field in struct.fields if field.name == grid.field]
    name, types = f"{_table_name(path[:-1])}_{grid.field}", {grid.line: "integer", grid.place: "integer"}
    types["value"] = _value(kind)[0]
    cells = [
        Column(name=column, type=of, nullable=True, meaning=meaning_of(name, column, column, ""))  # type: ignore[arg-type]
        for column, of in types.items()
    ]
    return Table(name=name, meaning=grid.meaning, path=path, columns=(*keys, *cells), form="grid")


def _keys(struct: inspect.StructType, own: Sequence[Column], table: str, count: int) -> Iterator[Column]:
    """The keys that tell rows of `table` apart, as the tables below it have it."""
    names = KEYS.get(struct.cls)
    if names is None:
        yield Column(name=f"{table}_row", type="integer", meaning=f"row of the table `{table}`, from 0", above=count)
        return
    for number, name in enumerate(names, count):
        (column,) = [column for column in own if column.name == name]
        yield msgspec.structs.replace(column, path=(), above=number)


def _plain(kind: inspect.Type) -> tuple[inspect.Type, str, bool]:
    """(type without metadata and None, description, whether None is allowed)."""
    meaning, optional = "", False
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            meaning = meaning or str((kind.extra_json_schema or {}).get("description", ""))
            kind = kind.type
            continue
        rest = tuple(one for one in kind.types if not isinstance(one, inspect.NoneType))
        optional = optional or len(rest) < len(kind.types)
        if len(rest) != 1:
            return inspect.UnionType(rest), meaning, optional
        kind = rest[0]
    return kind, meaning, optional


def _value(kind: inspect.Type) -> tuple[ColumnType, int]:
    """(type, depth of lists) of a value; what no column can hold is text in JSON."""
    lists = 0
    while isinstance(kind, inspect.ListType):
        kind, lists = _plain(kind.item_type)[0], lists + 1
    if isinstance(kind, inspect.UnionType) and {type(one) for one in kind.types} == {
        inspect.IntType,
        inspect.FloatType,
    }:
        return "number", lists
    for known, name in _KINDS:
        if isinstance(kind, known):
            return name, lists
    return "json", 0


def _table_name(path: Sequence[str]) -> str:
    if not path:
        return ONE_ROW
    parts = [part for number, part in enumerate(path) if part != "ranks" and part not in path[:number]]
    return "_".join(parts) or "ranks"


def _first_sentence(struct: Any) -> str:
    text = " ".join((struct.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")
