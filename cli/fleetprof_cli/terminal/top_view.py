"""`top` on any output: a table that is drawn anew in a terminal, the table once elsewhere, or one JSON document.

Guarantees: it ends by Ctrl-C without a trace on the terminal but the last table; an answer that fails ends it with its
sentence.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

import click
import msgspec
from fleetprof_api.telemetry.figures import FleetFigures, WorkloadFigures
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.top_table import draw_jobs, draw_ranks
from fleetprof_cli.terminal.whole_print import print_whole

_LEAST_PAUSE_S: Final = 1.0
_UNTOLD: Final = 'Its ranks are not shown, because its pods do not have the label fleetprof.io/rank-metrics: "true".'
Ask = Callable[[], Awaitable[FleetFigures]]


async def show_top(ask: Ask, *, job: str, output: str, none: str) -> None:
    """`ask` gives the figures of now; with `job`, of that workload and its ranks. `none`: what to say of no job."""
    figures = await ask()
    if job and not figures.workloads:
        raise Failure(f"no job {job!r} runs now", next_step="see which do: leave the name out", code=ExitCode.REFUSED)
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(figures), indent=2))
        return
    console = Console()
    if not console.is_terminal:
        print_whole(draw_top(figures, job, none))
        return
    with Live(draw_top(figures, job, none), console=console, auto_refresh=False) as live:
        while True:
            await asyncio.sleep(max(_LEAST_PAUSE_S, figures.interval_ns / 1e9))
            figures = await ask()
            live.update(draw_top(figures, job, none), refresh=True)


def draw_top(figures: FleetFigures, job: str, none: str) -> RenderableType:
    """The display of one moment."""
    if not figures.workloads:
        return Text(none)
    if not job:
        return draw_jobs(figures)
    return Group(*(part for workload in figures.workloads for part in _draw_one(workload)))


def _draw_one(workload: WorkloadFigures) -> tuple[RenderableType, ...]:
    alone = FleetFigures(at_unix_ns=0, interval_ns=0, workloads=[workload])
    ranks = draw_ranks(workload) if workload.members is not None else Text(_UNTOLD)
    return draw_jobs(alone), Text(), ranks
