"""The options of `capture` that describe a request, and the file that holds one: the same here and on Kubernetes."""

from collections.abc import Callable
from typing import Any, Final

import click
from fleetprof_api.request import Collect, InvalidRequest, ProfileRequest, Traces, load_request

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.request_flags import Wishes, parse_ranks

_MAX_FILE_BYTES: Final = 1 << 20


def read_ranks(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[int] | None:
    """The callback of `--ranks`."""
    try:
        return None if value is None else parse_ranks(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _collect(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    return [name.strip() for words in value for name in words.split(",") if name.strip()]


_OPTIONS: Final = (
    click.option("--iterations", metavar="N", type=int, help="How many training iterations  [default: 5]."),
    click.option("--duration-ms", metavar="MS", type=int, help="A length of time instead of iterations."),
    click.option("--warmup", metavar="N", type=int, help="Iterations to trace and throw away before."),
    click.option("--ranks", metavar="0,8,16-19", callback=read_ranks, help="These ranks  [default: all]."),
    click.option("--sample", metavar="N", type=int, help="So many ranks, spread evenly."),
    click.option("--every", metavar="N", type=int, help="Every Nth rank."),
    click.option(
        "--collect",
        metavar="WHAT[,WHAT]",
        multiple=True,
        callback=_collect,
        help=f"What to record as well; each costs time in the job: {', '.join(Collect)}.",
    ),
    click.option(
        "--traces",
        type=click.Choice([traces.value for traces in Traces], case_sensitive=False),
        help="Which ranks upload a whole trace  [default: Full].",
    ),
    click.option("--max-trace-mib", metavar="MIB", type=int, help="Give a rank up whose trace is larger."),
    click.option(
        "--max-slowdown",
        metavar="PERCENT",
        type=int,
        help="Stop a rank's recording whose iterations become slower by more; needs the agent.",
    ),
    click.option("--deadline", metavar="SECONDS", type=int, help="Give up after so long  [default: 900]."),
    click.option(
        "-f",
        "--file",
        metavar="FILE",
        type=click.File("rb"),
        help="A ProfileRequest as YAML, instead of the flags above; `-` reads stdin.",
    ),
)


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them all; `read_wishes` and `read_file` take them out of the command's arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_wishes(flags: dict[str, Any]) -> Wishes:
    """What the options said."""
    return Wishes(
        iterations=flags["iterations"],
        duration_ms=flags["duration_ms"],
        warmup=flags["warmup"],
        ranks=flags["ranks"],
        sample=flags["sample"],
        every=flags["every"],
        collect=flags["collect"],
        traces=flags["traces"],
        deadline_s=flags["deadline"],
        max_trace_mib=flags["max_trace_mib"],
        max_slowdown_percent=flags["max_slowdown"],
    )


def read_file(flags: dict[str, Any], target: str) -> ProfileRequest | None:
    """The request in the file, None when none was named. Raises UsageError beside other flags, Failure when wrong.

    `target` is what else names the job: it must be empty.
    """
    file = flags["file"]
    if file is None:
        return None
    if target or read_wishes(flags) != Wishes(collect=[]):
        raise click.UsageError("-f holds the whole request: leave the job and the flags that describe it out")
    text = file.read(_MAX_FILE_BYTES + 1)
    if len(text) > _MAX_FILE_BYTES:
        raise Failure(f"{file.name} is larger than {_MAX_FILE_BYTES >> 20} MiB", code=ExitCode.INVALID)
    try:
        return load_request(text.decode())
    except UnicodeDecodeError:
        raise Failure(f"{file.name} is not UTF-8 text", code=ExitCode.INVALID) from None
    except InvalidRequest as error:
        raise refuse_invalid(f"{file.name} is not a valid ProfileRequest", error) from None


def refuse_invalid(what: str, error: InvalidRequest) -> Failure:
    """The failure that names every problem of a request."""
    problems = "\n".join(f"  {problem}" for problem in error.problems)
    return Failure(f"{what}:\n{problems}", next_step="docs/request.md describes every field", code=ExitCode.INVALID)
