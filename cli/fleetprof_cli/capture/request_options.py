"""The options of `capture` that describe a request, and the file that holds one: the same here and on Kubernetes.

Guarantees: the bounds of numbers are those of the request's fields; what is wrong about the flags is said in their own
names, before anybody is asked.
"""

from collections.abc import Callable
from typing import Any, Final

import click
from fleetprof_api.choices import Activity, explain_retired
from fleetprof_api.request import (
    CanaryMode,
    Collect,
    Conflict,
    InvalidRequest,
    Limits,
    ProfileRequest,
    Ranks,
    Spec,
    ThreadSampling,
    Traces,
    Window,
    load_request,
)
from fleetprof_api.request.part import Part

from fleetprof_cli.capture.rank_numbers import read_ranks
from fleetprof_cli.capture.request_flags import CaptureOptions, find_contradiction
from fleetprof_cli.durations import Duration
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.ranges import IntegerRange

_MAX_FILE_BYTES: Final = 1 << 20
_MILLISECOND_NS: Final = 10**6
_OF_MODULES: Final = (Collect.MODULE_TREE.value, Collect.SHAPES.value)


def _collect(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    known = {name.lower(): name.value for name in Collect}
    named = [name.strip() for words in value for name in words.split(",") if name.strip()]
    for name in named:
        if name.lower() not in known:
            raise click.BadParameter(explain_retired(name.title()) or f"{name!r} is not one of {', '.join(Collect)}.")
    return list(dict.fromkeys(known[name.lower()] for name in named))


def _bounds(part: type[Part], field: str, unit: int = 1) -> IntegerRange:
    """The range of a field of the request, in multiples of `unit`."""
    rules = part.model_fields[field].metadata
    (least,) = (rule.ge for rule in rules if hasattr(rule, "ge"))
    (most,) = (rule.le for rule in rules if hasattr(rule, "le"))
    return IntegerRange(-(-least // unit), most // unit)


_OPTIONS: Final = (
    click.option(
        "--iterations",
        metavar="N",
        type=_bounds(Window, "iterations"),
        help="How many training iterations (default: 5).",
    ),
    click.option(
        "--duration",
        metavar="DURATION",
        type=Duration.of_field(Window, "duration_millis", _MILLISECOND_NS),
        help="A length of time, for example 500ms. With --iterations: what ends first by the pace of the job.",
    ),
    click.option(
        "--warmup",
        metavar="N",
        type=_bounds(Window, "warmup_iterations"),
        help="Iterations to trace and throw away before.",
    ),
    click.option(
        "--iteration-range",
        metavar="NAME",
        help="What an iteration is in a job without optimizer steps: a range of this name, for example execute_model.",
    ),
    click.option("--ranks", metavar="0,8,16-19", callback=read_ranks, help="These ranks (default: all)."),
    click.option(
        "--sample", metavar="N", type=_bounds(Ranks, "sample"), help="Capture this many ranks, spread evenly."
    ),
    click.option("--every", metavar="N", type=_bounds(Ranks, "every"), help="Every Nth rank."),
    click.option(
        "--collect",
        metavar="WHAT[,WHAT]",
        multiple=True,
        callback=_collect,
        help=f"What to record as well: {', '.join(Collect)}. Each costs time in the job.",
    ),
    click.option(
        "--activities",
        type=click.Choice([activity.value for activity in Activity], case_sensitive=False),
        multiple=True,
        help="Record device work and the marks of iterations alone: the smallest trace there is (default: everything).",
    ),
    click.option(
        "--modules",
        is_flag=True,
        help="Record by module of the model: time, memory, FLOPs. Short for `--collect ModuleTree,Shapes`.",
    ),
    click.option(
        "--thread-samples",
        type=click.Choice([wish.value for wish in ThreadSampling], case_sensitive=False),
        help="Whether to note where the training thread is in its Python code (default: Auto).",
    ),
    click.option(
        "--traces",
        type=click.Choice([traces.value for traces in Traces], case_sensitive=False),
        help="Which ranks upload a whole trace (default: Full).",
    ),
    click.option(
        "--canary",
        type=click.Choice([canary.value for canary in CanaryMode], case_sensitive=False),
        help="Whether one rank records one iteration first. Auto: if no earlier capture shows the cost "
        "(default: Auto).",
    ),
    click.option(
        "--max-trace-mib",
        metavar="MIB",
        type=_bounds(Limits, "max_trace_bytes", 1 << 20),
        help="Drop the trace of a rank if it is larger (default: 1024).",
    ),
    click.option(
        "--max-slowdown",
        metavar="PERCENT",
        type=_bounds(Limits, "max_slowdown_percent"),
        help="Stop a rank whose iterations slow down by more than this, 0: never. Needs the agent (default: 200).",
    ),
    click.option(
        "--deadline",
        metavar="DURATION",
        type=Duration.of_field(Spec, "active_deadline_seconds"),
        help="Give up after this time, for example 40s. Waiting in the queue does not count (default: 15m).",
    ),
    click.option(
        "--missing-grace",
        metavar="DURATION",
        type=Duration.of_field(Spec, "missing_ranks_grace_seconds"),
        help="Once some ranks are there, wait this long for missing ones, then go on without them "
        "(default: until the deadline).",
    ),
    click.option(
        "--conflict",
        type=click.Choice([conflict.value for conflict in Conflict], case_sensitive=False),
        help="While other captures use these ranks: wait for a turn, or end (default: Wait).",
    ),
    click.option(
        "-f",
        "--file",
        metavar="FILE",
        type=click.File("rb"),
        help="A ProfileRequest as YAML, instead of the flags above. `-` reads stdin.",
    ),
)


OPTION_GROUPS: Final = {
    "What to record": (
        "iterations",
        "duration",
        "warmup",
        "iteration_range",
        "activities",
        "collect",
        "modules",
        "thread_samples",
    ),
    "Which ranks": ("namespace", "selector", "ranks", "sample", "every", "missing_grace"),
    "What to keep": ("traces", "max_trace_mib"),
    "What protects the job": ("canary", "max_slowdown", "deadline", "conflict"),
}
"""Headings of the help of `capture`, with the names of their options."""


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them all; `read_options` and `read_file` take them out of the command's arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_options(flags: dict[str, Any]) -> CaptureOptions:
    """The options' values. Raises UsageError where one excludes or needs another."""
    options = CaptureOptions(
        iterations=flags["iterations"],
        duration_ms=flags["duration"],
        warmup=flags["warmup"],
        ranks=flags["ranks"],
        sample=flags["sample"],
        every=flags["every"],
        iteration_range=flags["iteration_range"],
        collect=list(dict.fromkeys([*flags["collect"], *(_OF_MODULES if flags["modules"] else ())])),
        activities=flags["activities"],
        thread_samples=flags["thread_samples"],
        traces=flags["traces"],
        canary=flags["canary"],
        deadline_s=flags["deadline"],
        missing_grace_s=flags["missing_grace"],
        conflict=flags["conflict"],
        max_trace_mib=flags["max_trace_mib"],
        max_slowdown_percent=flags["max_slowdown"],
    )
    if problem := find_contradiction(options):
        raise click.UsageError(problem)
    return options


def read_file(flags: dict[str, Any], target: str) -> ProfileRequest | None:
    """The request in the file, None when none was named. Raises UsageError beside other flags, Failure when wrong.

    `target` is what else names the job: it must be empty.
    """
    file = flags["file"]
    if file is None:
        return None
    if target or read_options(flags) != CaptureOptions(collect=[]):
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
    step = "docs/request.md describes every field"
    return Failure(f"{what}:", details=error.problems, next_step=step, code=ExitCode.INVALID)
