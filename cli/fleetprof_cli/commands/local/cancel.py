"""`fleetprof cancel`: cancels captures that have not ended, from another terminal than the one that asked."""

import asyncio
import sys
from collections.abc import Sequence

import click
from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_cli.completions import complete_capture
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import say
from fleetprof_cli.options import state_option
from fleetprof_cli.typed_commands import as_typed


@click.command("cancel")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...", shell_complete=complete_capture)
@state_option
@click.pass_obj
def command(state: StateDirectory, *, captures: tuple[str, ...]) -> None:
    """Cancel captures that have not ended. CAPTURE is a name, a uid, or the beginning of one.

    Ranks that have no order yet get none. The agent stops ranks that record; without it their window ends by itself and
    the trace is thrown away.
    """
    if not asyncio.run(_cancel(state, captures)):
        sys.exit(ExitCode.REFUSED)


async def _cancel(state: StateDirectory, references: Sequence[str]) -> bool:
    """Tells whether each was under way."""
    clean = True
    async with HubClient(state) as hub:
        known = await hub.captures()
        for reference in references:
            found = find_running(known, reference)
            if len(found) == 1:
                await hub.cancel(found[0].uid)
                say(f"cancelling {found[0].name} ({found[0].uid})")
                continue
            several = ", ".join(capture.uid for capture in found)
            say(f"{reference} may be any of {several}" if found else f"no capture {reference!r} is under way")
            say(as_typed("  see which are: fleetprof list"))
            clean = False
    return clean


def find_running(captures: Sequence[pb.CaptureStatus], reference: str) -> list[pb.CaptureStatus]:
    """The captures under way that may be meant. Nothing, as an unset variable of a shell leaves it, means none."""
    running = [capture for capture in captures if not capture.finished]
    exact = [capture for capture in running if reference in (capture.uid, capture.name)]
    return exact or [capture for capture in running if reference and capture.uid.startswith(reference)]
