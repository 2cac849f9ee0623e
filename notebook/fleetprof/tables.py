"""The tables of a report as pandas DataFrames.

Guarantees: a table is made when it is first asked for; types do not depend on the content: integers that may be missing
are `Int64`, so that no Unix time passes through a float; every table and column is described by `describe`.
"""

import html
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fleetprof_api.report.report import Report
from fleetprof_api.tables import Column, Table, columns_of, list_tables

_TYPES: Final = {
    ("integer", False): "int64",
    ("integer", True): "Int64",
    ("number", False): "float64",
    ("number", True): "float64",
    ("boolean", False): "bool",
    ("boolean", True): "boolean",
}


class Tables(Mapping[str, Any]):
    """A report's tables by name, as items (`tables["kernels"]`) and as attributes (`tables.kernels`)."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._layouts = {table.name: table for table in list_tables()}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in self._layouts:
                raise KeyError(f"there is no table {name!r}; there are {', '.join(self._layouts)}")
            self._made[name] = _frame(self._report, self._layouts[name])
        return self._made[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._layouts:
            raise AttributeError(f"there is no table {name!r}; there are {', '.join(self._layouts)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._layouts]

    def __repr__(self) -> str:
        wide = max(map(len, self._layouts))
        lines = [f"{name:<{wide}}  {self.rows(name):>7} rows  {self._layouts[name].meaning}" for name in self]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = "".join(
            f"<tr><td style='text-align: left'><code>{name}</code></td><td>{self.rows(name)}</td>"
            f"<td style='text-align: left'>{html.escape(self._layouts[name].meaning)}</td></tr>"
            for name in self
        )
        return f"<table><tr><th>table</th><th>rows</th><th>what it holds</th></tr>{rows}</table>"

    def rows(self, name: str) -> int:
        """The number of rows of a table."""
        layout = self._layouts[name]
        return len(columns_of(self._report, layout)[layout.columns[0].name])

    def describe(self, name: str) -> Any:
        """A DataFrame with the columns of a table: name, type, unit, meaning."""
        pandas = _pandas()
        rows = [(c.name, _type_of(c), c.unit, c.meaning) for c in self._layouts[name].columns]
        return pandas.DataFrame(rows, columns=["column", "type", "unit", "meaning"]).set_index("column")


def _frame(report: Report, table: Table) -> Any:
    pandas = _pandas()
    values = columns_of(report, table)
    series = {
        column.name: pandas.Series(values[column.name], dtype=_type_of(column), name=column.name)
        for column in table.columns
    }
    return pandas.DataFrame(series)


def _type_of(column: Column) -> str:
    if column.lists:
        return "object"
    return _TYPES.get((column.type, column.nullable), "string")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "tables need pandas, which is not installed: pip install pandas (fleetprof's extra `notebook`)",
            name="pandas",
        ) from None
    return pandas
