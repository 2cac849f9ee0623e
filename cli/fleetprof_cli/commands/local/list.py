"""`fleetprof list`: what can be captured now, and what was captured.

Guarantees: without a hub it still lists what the object store holds.
"""

import asyncio
import json
import time
from typing import Any

import click
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger
from fleetprof_api.plain_text import make_printable
from fleetprof_api.quantities import duration
from fleetprof_operator.hub.ledger.messages import to_status
from rich.table import Table
from rich.text import Text

from fleetprof_cli.capture.jobs import RunningJob, group_jobs
from fleetprof_cli.durations import say_duration
from fleetprof_cli.local.hub_client import HubClient, NoHub
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import say
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.reports.stored import read_captures
from fleetprof_cli.store_location import open_store
from fleetprof_cli.terminal.status_text import sentence, status_document, succeeded
from fleetprof_cli.terminal.whole_print import print_whole
from fleetprof_cli.typed_commands import as_typed


@click.command("list")
@output_option("text", "json", text="Form of the output.")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, output: str) -> None:
    """List the jobs that can be captured and the captures there are, the latest first."""
    try:
        jobs, captures = asyncio.run(_ask(state))
    except NoHub as error:
        say(f"{error.message}; this is what the object store holds")
        say(f"  {error.next_step}")
        jobs, captures = [], [_from_store(capture.ledger) for capture in read_captures(open_store(state.store()))]
    if output == "json":
        document: dict[str, Any] = {
            "jobs": [job.document() for job in jobs],
            "captures": [status_document(capture) for capture in captures],
        }
        click.echo(json.dumps(document, indent=2))
        return
    print_whole(
        _job_table(jobs) if jobs else as_typed("No job can be captured now. Start one: fleetprof run -- COMMAND")
    )
    click.echo()
    print_whole(make_capture_table(captures) if captures else as_typed("No capture yet. Take one: fleetprof capture"))


async def _ask(state: StateDirectory) -> tuple[list[RunningJob], list[pb.CaptureStatus]]:
    async with HubClient(state) as hub:
        captures = await hub.captures()
        return group_jobs(await hub.fleet()), sorted(captures, key=lambda c: -c.submitted_unix_ns)


def _from_store(ledger: Ledger) -> pb.CaptureStatus:
    """A stored ledger as the status that its hub would give."""
    return to_status(ledger, target="", request_json="", finished=bool(ledger.completed_unix_ns), report_location="")


def _job_table(jobs: list[RunningJob]) -> Table:
    table = Table("JOB", "NAMESPACE", "HOSTS", "RANKS", "AGENT", "ITERATION", "STATE", box=None, pad_edge=False)
    for running in jobs:
        trainers = running.trainers()
        iterations = [p.step.iteration_ns for p in trainers if p.HasField("step") and p.step.iteration_ns]
        with_agent = sum(process.has_agent or process.agent_waits for process in trainers)
        table.add_row(
            Text(make_printable(running.job.name)),
            Text(make_printable(running.job.namespace)),
            str(len(running.hosts)),
            str(len(trainers)),
            "all" if trainers and with_agent == len(trainers) else str(with_agent),
            duration(sorted(iterations)[len(iterations) // 2]) if iterations else "",
            Text(_state_of(running)),
        )
    return table


def _state_of(running: RunningJob) -> str:
    if running.namesakes:
        return f"{len(running.namesakes)} jobs of this name: {'; '.join(map(make_printable, running.namesakes))}"
    if obstacle := running.obstacle():
        return make_printable(obstacle)
    trainers = running.trainers()
    return "busy" if any(process.busy for process in trainers) else "ready" if trainers else "no training process yet"


def make_capture_table(captures: list[pb.CaptureStatus]) -> Table:
    """A line for each, with nothing of theirs that a terminal would obey."""
    table = Table("CAPTURE", "NAME", "RANKS", "STATE", "QUEUE", "AGE", box=None, pad_edge=False)
    now = time.time_ns()
    for capture in captures:
        stored = sum(rank.state == pb.UPLOADED for rank in capture.ranks)
        table.add_row(
            Text(make_printable(capture.uid)),
            Text(make_printable(capture.name)),
            f"{stored}/{len(capture.ranks)}",
            Text(make_printable(succeeded(capture).reason or sentence(capture))),
            str(capture.queue_position or ""),
            say_duration(now - capture.submitted_unix_ns),
        )
    return table
