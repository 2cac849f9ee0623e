"""Takes a table's columns out of a report.

Guarantees: the report is only read; all columns of a table are equally long; values are None, bool, int, float, str or
lists of them, as the column's type says. A report of somebody else that holds what no column can is UnreadableReport.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import zip_longest
from typing import Any, Final

import msgspec

from fleetprof_api.report import Report, UnreadableReport
from fleetprof_api.tables.layout import KEYS, LONG, Column, Table

_INT64: Final = range(-(1 << 63), 1 << 63)


def columns_of(report: Report, table: Table) -> dict[str, list[Any]]:
    """The values of each column, by its name, in the order of the report. Raises UnreadableReport."""
    found: dict[str, list[Any]] = {column.name: [] for column in table.columns}
    for keys, row in _rows(report, table.path, ()):
        if table.long:
            _add_long(found, table.columns, keys, row)
            continue
        for column in table.columns:
            found[column.name].append(_value(keys, row, column))
    for column in table.columns:
        if column.type == "integer":
            _check_integers(table, column, found[column.name])
    return found


def _rows(value: Any, path: tuple[str, ...], keys: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(keys of the rows above, row) of all rows at the end of `path`."""
    if value is None:
        return
    if not path:
        yield keys, value
        return
    child = getattr(value, path[0])
    if not isinstance(child, list):
        yield from _rows(child, path[1:], keys)
        return
    for number, item in enumerate(child):
        yield from _rows(item, path[1:], (*keys, *_keys(item, number)) if len(path) > 1 else keys)


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


def _add_long(found: dict[str, list[Any]], columns: tuple[Column, ...], keys: tuple[Any, ...], row: Any) -> None:
    """One row per entry of the struct's lists; what the struct says once is said in each."""
    lists = LONG[type(row)].values()
    parts = {column.name: _value(keys, row, column) for column in columns}
    for values in zip_longest(*(parts[name] for name in lists)):
        entry = parts | dict(zip(lists, values, strict=True))
        for name, value in entry.items():
            found[name].append(value)


def _check_integers(table: Table, column: Column, values: list[Any]) -> None:
    for value in values:
        if isinstance(value, list):
            _check_integers(table, column, value)
        elif value is not None and value not in _INT64:
            raise UnreadableReport(f"{column.name} in {table.name} must fit into 64 bits with its sign, got {value}")
