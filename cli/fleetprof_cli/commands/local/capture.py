"""`fleetprof capture`: asks for a capture, shows how every rank gets on, takes it back on Ctrl-C.

Guarantees: with `-o json` stdout holds one document and nothing else.
"""

import asyncio
import json
import sys
from typing import Any

import click
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.plain_text import make_printable

from fleetprof_cli.capture.request_options import OPTION_GROUPS, read_file, read_options, request_options
from fleetprof_cli.completions import complete_job
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.capture import take_capture
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.option_groups import GroupedCommand
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.terminal.status_text import exit_code, failure_lines, status_document
from fleetprof_cli.typed_commands import as_typed


@click.command("capture", cls=GroupedCommand, groups=OPTION_GROUPS)
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--namespace", metavar="NAME", help="Namespace of the job, if several jobs have its name.")
@request_options
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the end of the capture.")
@click.option("--wait-for-job", is_flag=True, help="Wait for a job that has not started yet.")
@output_option("text", "json", text="What goes to stdout: where the report is, or the capture's status.")
@state_option
@click.pass_context
def command(context: click.Context, /, **flags: Any) -> None:
    """Capture a few iterations of a running job on every rank: the same ones on all of them.

    JOB is its name. You may leave it out if only one job runs. If the job has just started, the command waits until it
    trains. Ctrl-C cancels the capture. A second Ctrl-C exits at once.

    \b
    Twenty iterations, to see who is late:  fleetprof capture --iterations 20
    The time of each module of the model:   fleetprof capture --collect ModuleTree
    Eight ranks of many, for half a second: fleetprof capture --sample 8 --duration 500ms
    What a file asks for:                   fleetprof capture -f request.yaml
    """
    state: StateDirectory = context.obj
    request = read_file(flags, flags["job"] or ("--wait-for-job" if flags["wait_for_job"] else ""))
    options = read_options(flags)
    try:
        status = asyncio.run(
            take_capture(
                state,
                request,
                options,
                flags["job"],
                flags["namespace"],
                wait=flags["wait"],
                wait_for_job=flags["wait_for_job"],
            )
        )
    except KeyboardInterrupt:
        raise Failure("interrupted before the hub was asked", code=ExitCode.INTERRUPTED) from None
    if flags["output"] == "json":
        click.echo(json.dumps(status_document(status), indent=2))
    elif flags["wait"] and status.report_location:
        click.echo(make_printable(status.report_location))
    elif not flags["wait"]:
        click.echo(make_printable(status.uid))
    if flags["wait"]:
        _say_next(status)
        sys.exit(exit_code(status))


def _say_next(status: pb.CaptureStatus) -> None:
    if status.report_location:
        say(as_typed(f"the report: fleetprof report {status.uid}"))
    for line in failure_lines(status):
        say(line)
