"""`kubectl fleetprof cancel`: takes captures back."""

import asyncio
import sys
from typing import Any

import click

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.messages import say


@click.command("cancel")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@place_options
def command(names: tuple[str, ...], **flags: Any) -> None:
    """Cancel captures that have not ended; the requests stay and say so.

    Ranks that have no order yet get none; ranks that record already are stopped through the agent, or end with their
    bounded window and are thrown away.
    """
    if not asyncio.run(_cancel(read_place(flags), names)):
        sys.exit(ExitCode.INVALID)


async def _cancel(place: ClusterPlace, names: tuple[str, ...]) -> bool:
    """Tells whether there was something to take back in every one."""
    clean = True
    async with connect(place) as connection:
        requests = Requests(connection)
        for name in names:
            state = await requests.find(name)
            if state.finished:
                say(f"{name} has ended already ({state.reason()}); remove it with: kubectl delete profreq {name}")
                clean = False
                continue
            await requests.cancel(state)
            say(f"taking {name} back")
    return clean
