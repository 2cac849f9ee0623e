"""`fleetprof capture`: asks for a capture, shows how every rank gets on, takes it back on Ctrl-C.

Guarantees: with `-o json` stdout holds one document and nothing else.
"""

import asyncio
import json
import sys
from typing import Any

import click
from fleetprof_api import hub_pb2 as pb

from fleetprof_cli.capturing import take_capture
from fleetprof_cli.messages import say
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.request_options import read_file, read_wishes, request_options
from fleetprof_cli.state import StateDirectory
from fleetprof_cli.status_text import exit_code, failure_lines, status_document


@click.command("capture")
@click.argument("job", required=False)
@click.option("--namespace", metavar="NAME", help="Namespace of the job, where several have its name.")
@request_options
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the end of the capture.")
@output_option("text", "json", text="What goes to stdout: where the report is, or the capture's status.")
@state_option
@click.pass_context
def command(context: click.Context, /, **flags: Any) -> None:
    """Capture a few iterations of a running job on every rank: the same ones on all of them.

    JOB is its name; it may be left out when one job is running. Ctrl-C takes the capture back; a second one leaves.
    """
    state: StateDirectory = context.obj
    request = read_file(flags, flags["job"] or "")
    wishes = read_wishes(flags)
    status = asyncio.run(take_capture(state, request, wishes, flags["job"], flags["namespace"], wait=flags["wait"]))
    if flags["output"] == "json":
        click.echo(json.dumps(status_document(status), indent=2))
    elif flags["wait"] and status.report_location:
        click.echo(status.report_location)
    elif not flags["wait"]:
        click.echo(status.uid)
    if flags["wait"]:
        _say_next(status)
        sys.exit(exit_code(status))


def _say_next(status: pb.CaptureStatus) -> None:
    if status.report_location:
        say(f"the report: fleetprof report {status.uid}")
    for line in failure_lines(status):
        say(line)
