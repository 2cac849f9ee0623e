"""The offers of kubectl's shell completion where a running job is named: those that the operator has figures of.

Guarantees: asks with the person's own rights, as the command would, and no longer than LONGEST_S; what cannot be had
completes to nothing, without a word.
"""

import asyncio
from typing import Final

import click
from click.shell_completion import CompletionItem
from fleetprof_api.plain_text import make_printable
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.telemetry.figures import WorkloadFigures

from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.figures import FiguresReader
from fleetprof_cli.kubernetes.kinds import known_kind
from fleetprof_cli.messages import Failure

LONGEST_S: Final = 3.0


def complete_workload(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`job/llama`, of the namespace that the line names so far; of all with `-A`."""
    given = context.params
    place = ClusterPlace(kubeconfig=given["kubeconfig"], context=given["context_name"], namespace=given["namespace"])
    try:
        found = asyncio.run(_find(place, given["everywhere"], given["system_namespace"], given["service"]))
    except (Failure, ApiRefused, ApiUnreachable, TimeoutError, OSError):
        return []
    names = sorted({_name(one) for one in found})
    return [CompletionItem(make_printable(name)) for name in names if name.startswith(incomplete)]


async def _find(place: ClusterPlace, everywhere: bool, system_namespace: str, service: str) -> list[WorkloadFigures]:
    async with asyncio.timeout(LONGEST_S), connect(place) as connection:
        reader = FiguresReader(connection.cluster, system_namespace=system_namespace, service=service)
        return (await reader.read("" if everywhere else connection.namespace, "")).workloads


def _name(workload: WorkloadFigures) -> str:
    """As kubectl writes it where we know the kind; others by their own name, which is what `top` looks for."""
    lower = workload.kind.lower()
    return f"{lower if known_kind(lower) else workload.kind}/{workload.name}"
