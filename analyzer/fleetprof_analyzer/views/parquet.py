"""The report's tables as Parquet files, one per table, for people with their own tools.

Guarantees: every table is written, an empty one with its columns; column types do not depend on the content; unit and
meaning travel in the file, as metadata of each field. pyarrow is loaded here and nowhere else, and only when asked for.
"""

from pathlib import Path
from typing import Any, Final

from fleetprof_api import __version__
from fleetprof_api.errors import FleetprofError
from fleetprof_api.report.report import Report
from fleetprof_api.tables import Column, Table, columns_of, list_tables

_COMPRESSION: Final = "zstd"


class PyArrowMissing(FleetprofError):
    """Parquet files need a package that is not installed; the message says which."""


def write_tables(report: Report, folder: Path) -> list[Path]:
    """Writes `<table>.parquet` for each table into `folder`, which is made when missing; the files, in their order.

    Raises PyArrowMissing, UnreadableReport for numbers beyond 64 bits, OSError.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise PyArrowMissing(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow (fleetprof's extra `tables`)"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in list_tables():
        columns = columns_of(report, table)
        schema = _schema(pyarrow, table, report)
        arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
        path = folder / f"{table.name}.parquet"
        draft = path.with_name(path.name + ".part")
        pyarrow.parquet.write_table(pyarrow.table(arrays, schema=schema), draft, compression=_COMPRESSION)
        draft.replace(path)
        written.append(path)
    return written


def _schema(pyarrow: Any, table: Table, report: Report) -> Any:
    fields = [
        pyarrow.field(
            column.name,
            _type(pyarrow, column),
            nullable=column.nullable,
            metadata={"unit": column.unit, "meaning": column.meaning},
        )
        for column in table.columns
    ]
    about = {
        "fleetprof.table": table.name,
        "fleetprof.meaning": table.meaning,
        "fleetprof.version": __version__,
        "fleetprof.schema_version": str(report.schema_version),
    }
    return pyarrow.schema(fields, metadata=about)


def _type(pyarrow: Any, column: Column) -> Any:
    names = {"integer": "int64", "number": "float64", "boolean": "bool_", "text": "string", "json": "string"}
    found = getattr(pyarrow, names[column.type])()
    for _ in range(column.lists):
        found = pyarrow.list_(found)
    return found
