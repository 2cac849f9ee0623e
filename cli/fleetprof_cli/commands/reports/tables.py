"""`fleetprof tables`: the tables of a report and their columns, as DataFrames and Parquet files have them."""

import click
import msgspec
from fleetprof_api.tables import Column, Table, list_tables

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import output_option


@click.command("tables")
@click.argument("name", required=False, metavar="[TABLE]")
@output_option("text", "json", text="Form of the output.")
def command(*, name: str | None, output: str) -> None:
    """List the tables of a report, or the columns of one with type, unit and meaning."""
    tables = [table for table in list_tables() if name in (None, table.name)]
    if not tables:
        raise Failure(
            f"a report has no table {name!r}", next_step="see what there is: fleetprof tables", code=ExitCode.INVALID
        )
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode([_describe(table) for table in tables]), indent=1))
    elif name is None:
        _print_rows([(table.name, table.meaning) for table in tables])
    else:
        columns = tables[0].columns
        _print_rows([(column.name, _type(column), column.unit, column.meaning) for column in columns])


def _describe(table: Table) -> dict[str, object]:
    columns = [
        {"name": column.name, "type": _type(column), "unit": column.unit, "meaning": column.meaning}
        for column in table.columns
    ]
    return {"name": table.name, "path": ".".join(table.path), "meaning": table.meaning, "columns": columns}


def _type(column: Column) -> str:
    return "list of " * column.lists + column.type + (", or null" if column.nullable else "")


def _print_rows(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
