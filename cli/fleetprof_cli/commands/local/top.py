"""`fleetprof top`: what the running jobs do now."""

import asyncio

import click
import msgspec
from fleetprof_api.telemetry.figures import FleetFigures

from fleetprof_cli.completions import complete_job
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.terminal.top_view import show_top
from fleetprof_cli.typed_commands import as_typed

NONE = "No job runs now. Start one: fleetprof run -- COMMAND"


@click.command("top")
@click.argument("job", default="", required=False, shell_complete=complete_job)
@output_option("text", "json", text="Form of the output (json: one document).")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, job: str, output: str) -> None:
    """Show what the running jobs do now: all of them, or the ranks of JOB. Ctrl-C ends it.

    If the output is not a terminal, the table is printed once.
    """
    asyncio.run(_show(state, job, output))


async def _show(state: StateDirectory, job: str, output: str) -> None:
    async with HubClient(state) as hub:

        async def ask() -> FleetFigures:
            return msgspec.json.decode(await hub.telemetry(job), type=FleetFigures)

        await show_top(ask, job=job, output=output, none=as_typed(NONE))
