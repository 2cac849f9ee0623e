"""The option `--tables` of the commands that have a report: its tables as Parquet files.

Guarantees: what is missing or in the way is said with the next step.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from fleetprof_api.report.report import Report, UnreadableReport

from fleetprof_cli.messages import Failure, say


def tables_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--tables`; the command gets the folder as `tables`, None when it was not asked for."""
    return click.option(
        "--tables",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Write the report's tables there, as Parquet files.",
    )(command)


def export_tables(report: Report, folder: Path) -> None:
    """Writes them. Raises Failure."""
    from fleetprof_analyzer.views.parquet import PyArrowMissing, write_tables

    try:
        written = write_tables(report, folder)
    except (PyArrowMissing, UnreadableReport) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"cannot write to {folder}: {error.strerror}", next_step="choose another: --tables DIR") from None
    say(f"wrote {len(written)} tables to {folder}")
