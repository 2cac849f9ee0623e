"""Takes a table's columns out of a report.

Guarantees: the report is only read; all columns of a table are equally long; values are None, bool, int, float, str or
lists of them, as the column's type says. A report of somebody else that holds what no column can is UnreadableReport.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import zip_longest
from typing import Any, Final

import msgspec

from fleetprof_api.report.report import Report, UnreadableReport
from fleetprof_api.tables.layout import GRIDS, KEYS, LONG, Column, Table

_INT64: Final = range(-(1 << 63), 1 << 63)


def columns_of(report: Report, table: Table) -> dict[str, list[Any]]:
    """The values of each column, by its name, in the order of the report. Raises UnreadableReport."""
    found: dict[str, list[Any]] = {column.name: [] for column in table.columns}
    for keys, parent, row in _rows(report, table.path, (), report):
        parts = {column.name: _value(keys, row, column) for column in table.columns}
        entries = [{}] if table.form == "rows" else _cells(parent, row) if table.form == "grid" else _entries(row)
        for entry in entries:
            for name, value in (parts | entry).items():
                found[name].append(value)
    for column in table.columns:
        if column.type == "integer":
            _check_integers(table, column, found[column.name])
    return found


def _rows(
    value: Any, path: tuple[str, ...], keys: tuple[Any, ...], parent: Any
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """(keys of the rows above, the row above, row) of all rows at the end of `path`."""
    if value is None:
        return
    if not path:
        yield keys, parent, value
        return
    child = getattr(value, path[0])
    if not isinstance(child, list):
        yield from _rows(child, path[1:], keys, parent)
        return
    for number, item in enumerate(child):
        below = (*keys, *_keys(item, number)) if len(path) > 1 else keys
        yield from _rows(item, path[1:], below, item if len(path) > 1 else parent)


def _keys(row: Any, number: int) -> tuple[Any, ...]:
    names = KEYS.get(type(row))
    return (number,) if names is None else tuple(getattr(row, name) for name in names)


def _value(keys: tuple[Any, ...], row: Any, column: Column) -> Any:
    if column.above is not None:
        return keys[column.above]
    for name in column.path:
        if row is None:
            return None
        row = getattr(row, name)
    if column.type == "json":
        return None if row is None else msgspec.json.encode(row).decode()
    return row.value if isinstance(row, Enum) else row


def _entries(row: Any) -> Iterator[dict[str, Any]]:
    """The entries that differ from row to row of a long table: one entry of each of the struct's lists."""
    lists = LONG[type(row)]
    for values in zip_longest(*(getattr(row, name) for name in lists)):
        yield dict(zip(lists.values(), values, strict=True))


def _cells(parent: Any, row: Any) -> Iterator[dict[str, Any]]:
    """Cells that differ from row to row of a grid's table. A cell beyond the lists of the row above has no place."""
    grid = GRIDS[type(row)]
    matrix, places = getattr(row, grid.field), getattr(parent, grid.places)
    for number, line in enumerate(getattr(parent, grid.lines)):
        values = matrix[number] if number < len(matrix) else []
        for at, place in enumerate(places):
            value = values[at] if at < len(values) else None
            yield {grid.line: line, grid.place: place, "value": value}


def _check_integers(table: Table, column: Column, values: list[Any]) -> None:
    for value in values:
        if isinstance(value, list):
            _check_integers(table, column, value)
        elif value is not None and value not in _INT64:
            raise UnreadableReport(f"{column.name} in {table.name} must fit into 64 bits with its sign, got {value}")
