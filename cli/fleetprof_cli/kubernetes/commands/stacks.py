"""`kubectl fleetprof stacks`: where every rank of a job is now, also of a job that hangs, through a ProfileRequest.

Guarantees: who may make ProfileRequests in the namespace may ask, nobody else; the stacks are read from the object
store with the user's own credentials, as traces are; where that fails, the verdict of the status is shown.
"""

import asyncio
import sys
from datetime import datetime
from typing import Any

import click
import msgspec
from fleetprof_api.plain_text import make_printable
from fleetprof_api.stalls import JobStacks

from fleetprof_cli.capture.following import follow
from fleetprof_cli.capture.request_flags import make_stacks_request
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.kinds import find_kind, split_target
from fleetprof_cli.kubernetes.options import place_options, read_place, read_store, store_options
from fleetprof_cli.kubernetes.request_state import RequestState, headline_lines
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.kubernetes.results import Results
from fleetprof_cli.kubernetes.target_pods import require_injected, require_workload
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import output_option
from fleetprof_cli.terminal.stacks_text import print_stacks


@click.command("stacks")
@click.argument("target", metavar="KIND/NAME|REQUEST")
@click.option("--all-threads", is_flag=True, help="Show the stacks of all threads, not of the main one alone.")
@output_option("text", "json", text="Form of the output (json: one document with all samples).")
@store_options
@place_options
def command(target: str, *, all_threads: bool, output: str, **flags: Any) -> None:
    """Show where every rank of a job is at this moment, and which one the others wait for.

    It makes a ProfileRequest, which neither records nor touches the training, and works while the job hangs. With the
    name of such a request it shows what that one read.
    """
    place = read_place(flags)
    choice = read_store(flags, place)
    state = asyncio.run(_ask(place, target) if "/" in target else _find(place, target))
    if not state.has_succeeded:
        raise Failure(f"{state.name}: {state.sentence()}", code=ExitCode.REFUSED)
    try:
        stacks = Results.open(state, choice).stacks()
    except Failure:
        for line in headline_lines(state.status.headline):
            click.echo(make_printable(line), err=output == "json")
        say("this is what the request's status holds; the stacks themselves cannot be read")
        raise
    _print(state, stacks, output, all_threads=all_threads)


def _print(state: RequestState, stacks: JobStacks, output: str, *, all_threads: bool) -> None:
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(stacks)) + b"\n")
        return
    last = stacks.samples[-1]
    print_stacks(state.status.target or state.name, last.processes, last.verdict, all_threads=all_threads)
    say(f"the request: {state.name}")


async def _ask(place: ClusterPlace, target: str) -> RequestState:
    word, name = split_target(target)
    async with connect(place) as connection:
        kind = await find_kind(connection, word)
        await require_workload(connection, kind, name)
        workload = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
        request = make_stacks_request({"workload": workload}, name, connection.namespace, datetime.now())
        await require_injected(connection, request.spec.target, target)
        requests = Requests(connection)
        document = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        return await follow(requests, await requests.create(document))


async def _find(place: ClusterPlace, name: str) -> RequestState:
    async with connect(place) as connection:
        requests = Requests(connection)
        state = await requests.find(name)
        return state if state.finished else await follow(requests, state, takes_back=False)
