"""`kubectl fleetprof diff`: two captures before and after a change, from the object store.

Guarantees: reads only, with the user's own credentials; `-o json` prints one document (diff.v1.schema.json).
"""

import asyncio
from pathlib import Path
from typing import Any

import click
from fleetprof_api.report.report import Report

from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import StoreChoice, place_options, read_place, read_store, store_options
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.kubernetes.results import Results
from fleetprof_cli.options import output_option
from fleetprof_cli.reports.comparison import gate_option, parse_report, show_diff
from fleetprof_cli.reports.reference import read_file


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@gate_option
@output_option("text", "json", text="Print the comparison as text, or as a JSON document.")
@store_options
@place_options
def command(before: str, after: str, fail_above: float | None, output: str, **flags: Any) -> None:
    """Compare two captures of a job, before and after a change.

    BEFORE and AFTER are each the name of a request of the namespace, or a report.json on this machine.
    """
    place = read_place(flags)
    choice = read_store(flags, place)
    first, second = (_read(name, place, choice) for name in (before, after))
    show_diff(first, second, output, fail_above)


def _read(name: str, place: ClusterPlace, choice: StoreChoice) -> Report:
    if Path(name).is_file():
        return read_file(Path(name))
    state = asyncio.run(_find(place, name))
    return parse_report(Results.open(state, choice).report(), name)


async def _find(place: ClusterPlace, name: str) -> RequestState:
    async with connect(place) as connection:
        return await Requests(connection).find(name)
