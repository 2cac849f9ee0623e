"""`kubectl fleetprof wait`: follows a request to its end, whichever it is."""

import asyncio
import sys
from typing import Any

import click

from fleetprof_cli.capture.following import follow
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.kubernetes.output import print_end
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import LATEST, Requests
from fleetprof_cli.options import output_option


@click.command("wait")
@click.argument("name", default=LATEST)
@output_option("text", "json", "yaml", "name", text="What goes to stdout: where the report is, or the request.")
@place_options
def command(name: str, output: str, **flags: Any) -> None:
    """Follow a request until it ends, well or not. The exit code says how. Ctrl-C leaves it alone.

    NAME is the request's. Without it you get the latest of the namespace.
    """
    state = asyncio.run(_wait(read_place(flags), name))
    print_end(state, output)
    sys.exit(state.exit_code())


async def _wait(place: ClusterPlace, name: str) -> RequestState:
    async with connect(place) as connection:
        requests = Requests(connection)
        return await follow(requests, await requests.find(name), takes_back=False)
