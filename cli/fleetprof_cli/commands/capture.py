"""`fleetprof capture`: asks for a capture, shows how every rank gets on, takes it back on Ctrl-C.

Guarantees: with `-o json` stdout holds one document and nothing else.
"""

import asyncio
import json
import sys
from typing import Any, Final

import click
from fleetprof_api import hub_pb2 as pb
from fleetprof_api.request import Collect, InvalidRequest, ProfileRequest, load_request

from fleetprof_cli.capturing import refuse_invalid, take_capture
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.request_flags import Wishes, parse_ranks
from fleetprof_cli.state import StateDirectory
from fleetprof_cli.status_text import exit_code, failure_lines, status_document

_MAX_FILE_BYTES: Final = 1 << 20


def _ranks(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[int] | None:
    try:
        return None if value is None else parse_ranks(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _collect(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    return [name.strip() for words in value for name in words.split(",") if name.strip()]


@click.command("capture")
@click.argument("job", required=False)
@click.option("--namespace", metavar="NAME", help="Namespace of the job, where several have its name.")
@click.option("--iterations", metavar="N", type=int, help="How many training iterations  [default: 5].")
@click.option("--duration-ms", metavar="MS", type=int, help="A length of time instead of iterations.")
@click.option("--warmup", metavar="N", type=int, help="Iterations to trace and throw away before.")
@click.option("--ranks", metavar="0,8,16-19", callback=_ranks, help="These ranks  [default: all].")
@click.option("--sample", metavar="N", type=int, help="So many ranks, spread evenly.")
@click.option("--every", metavar="N", type=int, help="Every Nth rank.")
@click.option(
    "--collect",
    metavar="WHAT[,WHAT]",
    multiple=True,
    callback=_collect,
    help=f"What to record as well; each costs time in the job: {', '.join(Collect)}.",
)
@click.option("--max-trace-mib", metavar="MIB", type=int, help="Give a rank up whose trace is larger.")
@click.option("--deadline", metavar="SECONDS", type=int, help="Give up after so long  [default: 900].")
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    type=click.File("rb"),
    help="A ProfileRequest as YAML, instead of the flags above; `-` reads stdin.",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the end of the capture.")
@output_option("text", "json", text="What goes to stdout: where the report is, or the capture's status.")
@state_option
@click.pass_context
def command(context: click.Context, /, **flags: Any) -> None:
    """Capture a few iterations of a running job on every rank: the same ones on all of them.

    JOB is its name; it may be left out when one job is running. Ctrl-C takes the capture back; a second one leaves.
    """
    state: StateDirectory = context.obj
    wishes = Wishes(
        iterations=flags["iterations"],
        duration_ms=flags["duration_ms"],
        warmup=flags["warmup"],
        ranks=flags["ranks"],
        sample=flags["sample"],
        every=flags["every"],
        collect=flags["collect"],
        deadline_s=flags["deadline"],
        max_trace_mib=flags["max_trace_mib"],
    )
    if flags["file"] is not None and (flags["job"] or wishes != Wishes(collect=[])):
        raise click.UsageError("-f holds the whole request: leave JOB and the flags that describe it out")
    request = _read(flags["file"]) if flags["file"] is not None else None
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


def _read(file: Any) -> ProfileRequest:
    """The request in a file. Raises Failure with every problem."""
    text = file.read(_MAX_FILE_BYTES + 1)
    if len(text) > _MAX_FILE_BYTES:
        raise Failure(f"{file.name} is larger than {_MAX_FILE_BYTES >> 20} MiB", code=ExitCode.INVALID)
    try:
        return load_request(text.decode())
    except UnicodeDecodeError:
        raise Failure(f"{file.name} is not UTF-8 text", code=ExitCode.INVALID) from None
    except InvalidRequest as error:
        raise refuse_invalid(f"{file.name} is not a valid ProfileRequest", error) from None


def _say_next(status: pb.CaptureStatus) -> None:
    if status.report_location:
        say(f"the report: fleetprof report {status.uid}")
    for line in failure_lines(status):
        say(line)
