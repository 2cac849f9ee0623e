"""`kubectl fleetprof list`: the requests there are."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import click
from fleetprof_api.plain_text import make_printable
from rich.table import Table
from rich.text import Text

from fleetprof_cli.durations import say_duration
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.options import output_option
from fleetprof_cli.terminal.whole_print import print_whole


@click.command("list")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Captures of all namespaces.")
@output_option("text", "json", text="Form of the output.")
@place_options
def command(everywhere: bool, output: str, **flags: Any) -> None:
    """List the captures there are, the latest first."""
    states, namespace = asyncio.run(_list(read_place(flags), everywhere))
    if output == "json":
        click.echo(json.dumps([state.document for state in states], indent=2))
    elif states:
        print_whole(_table(states, everywhere))
    else:
        where = "" if everywhere else f" in namespace {namespace}"
        click.echo(f"No capture{where} yet. Take one: kubectl fleetprof capture job/NAME -n {namespace}")


async def _list(place: ClusterPlace, everywhere: bool) -> tuple[list[RequestState], str]:
    """The requests, and the namespace that is meant where none is said."""
    async with connect(place) as connection:
        return await Requests(connection).list(everywhere=everywhere), connection.namespace


def _table(states: list[RequestState], everywhere: bool) -> Table:
    columns = ["NAME", "TARGET", "RANKS", "STATE", "QUEUE", "BUSY", "REQUESTER", "AGE"]
    table = Table(*(["NAMESPACE", *columns] if everywhere else columns), box=None, pad_edge=False)
    now = datetime.now(UTC)
    for state in states:
        status, counts, created = state.status, state.counts, state.created()
        headline = status.headline
        busy = headline.busy_permille if headline else None
        cells = [
            state.name,
            status.target or "",
            f"{counts.uploaded or 0}/{counts.targeted}" if counts.targeted else "",
            state.reason(),
            str(status.queue_position or ""),
            f"{busy / 10:.1f} %" if busy is not None else "",
            status.requester or "",
            say_duration(int((now - created).total_seconds() * 1e9)) if created else "",
        ]
        table.add_row(*(Text(make_printable(cell)) for cell in ([state.namespace, *cells] if everywhere else cells)))
    return table
