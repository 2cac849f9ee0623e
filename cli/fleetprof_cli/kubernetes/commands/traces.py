"""`kubectl fleetprof traces`: fetches what a capture stored."""

import asyncio
from pathlib import Path
from typing import Any

import click
from fleetprof_api.quantities import size

from fleetprof_cli.capture.rank_numbers import read_ranks
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import place_options, read_place, read_store, store_options
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.kubernetes.results import Results
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.reports.fetched_page import link_traces


@click.command("traces")
@click.argument("name")
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the files.",
)
@click.option(
    "--ranks", metavar="0,8,16-19", callback=read_ranks, help="Fetch the traces of these ranks (default: all)."
)
@store_options
@place_options
def command(name: str, out: Path, ranks: list[int] | None, **flags: Any) -> None:
    """Fetch the traces of NAME, with samples, ledger and report, into a folder.

    It reads the object store with your own S3 credentials. The traces open in Perfetto, and `fleetprof analyze DIR`
    makes the report again.
    """
    place = read_place(flags)
    choice = read_store(flags, place)
    state = asyncio.run(_find(place, name))
    results = Results.open(state, choice)
    files, size_bytes = 0, 0
    for path, file_bytes in results.fetch(out, ranks):
        files, size_bytes = files + 1, size_bytes + file_bytes
        say(f"{path} ({size(file_bytes)})")
    if not files:
        step = f"see how it ended: kubectl fleetprof list -n {state.namespace}"
        raise Failure(f"the store holds nothing of {name}", next_step=step)
    try:
        link_traces(out)
    except OSError as error:
        say(f"report.html is as it was stored, without links to the traces: {error}")
    click.echo(out)
    say(f"{files} files, {size(size_bytes)}")


async def _find(place: ClusterPlace, name: str) -> RequestState:
    async with connect(place) as connection:
        return await Requests(connection).find(name)
