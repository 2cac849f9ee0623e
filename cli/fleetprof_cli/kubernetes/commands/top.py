"""`kubectl fleetprof top`: what the running jobs do now."""

import asyncio
from typing import Any

import click
from fleetprof_api.telemetry.figures import FleetFigures

from fleetprof_cli.kubernetes.completions import complete_workload
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.figures import SERVICE, SYSTEM_NAMESPACE, FiguresReader
from fleetprof_cli.kubernetes.kinds import known_kind
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.options import output_option
from fleetprof_cli.terminal.top_view import show_top


@click.command("top")
@click.argument("job", metavar="[KIND/NAME]", default="", required=False, shell_complete=complete_workload)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Jobs of all namespaces.")
@output_option("text", "json", text="Form of the output (json: one document).")
@click.option(
    "--system-namespace", metavar="NAME", default=SYSTEM_NAMESPACE, show_default=True, help="Namespace of the operator."
)
@click.option(
    "--service", metavar="NAME", default=SERVICE, show_default=True, help="The operator's Service for these figures."
)
@place_options
def command(job: str, everywhere: bool, output: str, system_namespace: str, service: str, **flags: Any) -> None:
    """Show what the running jobs do now: all of them, or the ranks of KIND/NAME. Ctrl-C ends it.

    If the output is not a terminal, the table is printed once.
    """
    asyncio.run(_show(read_place(flags), job, everywhere, output, system_namespace, service))


async def _show(
    place: ClusterPlace, job: str, everywhere: bool, output: str, system_namespace: str, service: str
) -> None:
    async with connect(place) as connection:
        namespace = "" if everywhere else connection.namespace

        reader = FiguresReader(connection.cluster, system_namespace=system_namespace, service=service)

        async def ask() -> FleetFigures:
            return await reader.read(namespace, _name_workload(job))

        where = "any namespace" if everywhere else f"namespace {namespace}"
        why = f"kubectl fleetprof doctor job/NAME -n {namespace or 'NAMESPACE'}"
        none = f"No job with a sidecar runs in {where}. To find out why: {why}"
        await show_top(ask, job=job, output=output, none=none)


def _name_workload(job: str) -> str:
    """As the hub names it: `job/llama` is `Job/llama`, a name alone stays."""
    word, slash, name = job.partition("/")
    kind = known_kind(word.lower()) if slash else None
    return f"{kind.kind if kind else word}/{name}" if slash else job
