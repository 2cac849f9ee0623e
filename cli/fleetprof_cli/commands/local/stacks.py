"""`fleetprof stacks`: where every rank of a job is at this moment, also of a job that hangs."""

import asyncio
import json

import click
import msgspec
from fleetprof_analyzer.stalls.verdict import judge_stall
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks, read_stacks

from fleetprof_cli.completions import complete_job
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.terminal.stacks_text import print_stacks


@click.command("stacks")
@click.argument("job", default="", required=False, shell_complete=complete_job)
@click.option("--all-threads", is_flag=True, help="Show the stacks of all threads, not of the main one alone.")
@output_option("text", "json", text="Form of the output (json: one document).")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, job: str, all_threads: bool, output: str) -> None:
    """Show where every rank of JOB is at this moment, and which one the others wait for.

    It works while the job hangs, needs no privilege, and does not touch the training.
    """
    answers = asyncio.run(_ask(state, job))
    jobs: dict[str, list[ProcessStacks]] = {}
    for reply in answers:
        try:
            jobs.setdefault(reply.workload, []).append(read_stacks(reply.stacks_json))
        except UnreadableStacks as error:
            raise Failure(f"the hub's answer cannot be read: {error}", next_step="update the older side") from None
    if not jobs:
        what = f"no job {job!r} runs now" if job else "no job runs now"
        raise Failure(what, next_step="see the jobs that run: fleetprof list", code=ExitCode.REFUSED)
    if output == "json":
        document = {
            name: {"verdict": msgspec.to_builtins(judge_stall(found)), "processes": msgspec.to_builtins(found)}
            for name, found in sorted(jobs.items())
        }
        click.echo(json.dumps(document, indent=2))
        return
    for name, found in sorted(jobs.items()):
        print_stacks(name, found, judge_stall(found), all_threads=all_threads)


async def _ask(state: StateDirectory, job: str) -> list[pb.StacksReply]:
    async with HubClient(state) as hub:
        return await hub.stacks(job)
