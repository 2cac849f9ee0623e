"""`fleetprof sweep`: the user's own command at several batch sizes, a capture of each, and the size to take.

Guarantees: the command runs as `fleetprof run` runs it, one size after the other, in a state of its own; each run has
ended before the next begins, also by Ctrl-C. `-o json` prints one document (docs/whatif.md).
"""

import asyncio
import re
import shlex
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

import click
import msgspec
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, fit_memory, fit_time, recommend, sized_capture
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.quantities import duration, size
from fleetprof_api.report.prediction import PredictedValue
from fleetprof_api.report.report import read_report
from fleetprof_store.base import NotFound

from fleetprof_cli.capture.jobs import group_jobs
from fleetprof_cli.capture.request_flags import CaptureOptions
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.capture import take_capture
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.own_command import last_lines, start_own, stop_own
from fleetprof_cli.local.saved_files import SavedFiles
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import output_option
from fleetprof_cli.ranges import IntegerRange
from fleetprof_cli.store_location import StoreLocation, open_store
from fleetprof_cli.terminal.reports import print_json
from fleetprof_cli.terminal.status_text import failure_lines, succeeded

_JOB: Final = "sweep"
_KEY: Final = "batch_size"
_PLACE: Final = "{batch_size}"
_SETTLED_STEPS: Final = 5
_SETTLES_WITHIN_S: Final = 300.0
_LOOK_EVERY_S: Final = 0.25


class SweepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One batch size that was run: median iteration, and the most memory of one of its processes."""

    batch_size: int
    iteration_ns: float
    samples_per_s: float
    memory_bytes: float | None = None
    iterations: int


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes together: iteration = slope x + constant, memory likewise, and the size to take."""

    schema_version: int = 1
    rows: list[SweepRow]
    slope_ns: float
    constant_ns: float
    memory_slope_bytes: float | None = None
    memory_constant_bytes: float | None = None
    recommended: int
    reason: str
    predicted_iteration_ns: PredictedValue
    predicted_memory_bytes: PredictedValue | None = None
    command: str


@click.command("sweep", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--set", "setting", metavar=f"{_KEY}=A,B,...", required=True, help=f"Sizes to run; {_PLACE} in COMMAND is each."
)
@click.option("--iterations", type=IntegerRange(2, 500), default=20, show_default=True, help="Iterations to capture.")
@click.option("--memory", "memory_gb", type=float, metavar="GB", help="Memory that a process may have.")
@click.option(
    "--watch",
    "watched",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Run again when this file, or one in this folder, is saved; Ctrl-C ends it.",
)
@output_option("text", "json", text="The result in words, or as a JSON document.")
@click.argument("words", metavar="-- COMMAND [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    *,
    setting: str,
    iterations: int,
    memory_gb: float | None,
    watched: tuple[Path, ...],
    output: str,
    words: tuple[str, ...],
) -> None:
    """Run a training command at several batch sizes, and find the one to take.

    The command is stopped as soon as its iterations are captured.
    """
    sizes = _read_sizes(setting)
    if not any(_PLACE in word for word in words):
        raise Failure(f"{_PLACE} is nowhere in the command", code=ExitCode.INVALID)
    if memory_gb is not None and not memory_gb > 0:
        raise Failure(f"--memory {memory_gb:g} is no memory: say how many GB a process may have", code=ExitCode.INVALID)
    memory_bytes = None if memory_gb is None else memory_gb * 1e9
    files = SavedFiles(watched)
    while True:
        try:
            _show(_conclude(_run_all(sizes, words, iterations), words, memory_bytes), output)
        except Failure as failure:
            if not watched:
                raise
            failure.show()
        if not watched:
            return
        say("waiting for a file to be saved; Ctrl-C ends this")
        say(f"saved: {', '.join(str(path) for path in files.wait()[:3])}")


def _run_all(sizes: list[int], words: tuple[str, ...], iterations: int) -> list[SizedCapture]:
    """The command at each size, one after the other."""
    captures = []
    with tempfile.TemporaryDirectory(prefix="fleetprof-sweep-") as name, ExitStack() as cleanup:
        folder = Path(name)
        state = StateDirectory(folder / "state")
        hub = start_own(folder / "up.log", "up", "--no-ui", "--state", str(state.path), "--store", f"{name}/store")
        cleanup.callback(stop_own, hub, "hub")
        for size in sizes:
            run = [word.replace(_PLACE, str(size)) for word in words]
            say(f"batch size {size}: {shlex.join(run)}")
            captures.append(_measure(state, size, run, iterations))
    return captures


def _show(result: SweepResult, output: str) -> None:
    if output == "json":
        print_json(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    else:
        click.echo(_say(result), nl=False)


def _read_sizes(setting: str) -> list[int]:
    key, _, values = setting.partition("=")
    parts = values.split(",")
    if key != _KEY or not all(part.isdecimal() and 0 < len(part) < 9 and int(part) for part in parts):
        raise Failure(f"{setting!r} is not {_KEY}=8,16,32", code=ExitCode.INVALID)
    sizes = sorted({int(part) for part in parts})
    if len(sizes) < 2:
        raise Failure("one size does not tell how time grows: name two or more", code=ExitCode.INVALID)
    return sizes


def _measure(state: StateDirectory, size: int, words: list[str], iterations: int) -> SizedCapture:
    """Runs the command until it is captured, and stops it."""
    folder, name = state.path.parent, f"{_JOB}-{size}"
    log = folder / f"{name}.log"
    with ExitStack() as cleanup:
        job = start_own(
            log, "run", "--no-hub", "--state", str(state.path), "--name", name, "--", *words, folder=str(Path.cwd())
        )
        cleanup.callback(stop_own, job, "job")
        status, memory_bytes = asyncio.run(_capture(state, name, job, iterations))
        try:
            store = open_store(StoreLocation(directory=str(folder / "store")))
            report = read_report(store.get(keys.report_key(status.namespace, status.uid)))
        except NotFound:
            why = succeeded(status).message
            raise Failure(f"batch size {size} was not captured: {why}", details=failure_lines(status)) from None
        found = sized_capture(report, size, memory_bytes)
        if not found.iteration_ns:
            raise Failure(f"the capture of batch size {size} holds no whole iteration", details=last_lines(log))
        return found


async def _capture(
    state: StateDirectory, name: str, job: subprocess.Popen[bytes], iterations: int
) -> tuple[pb.CaptureStatus, int | None]:
    """The capture, and the most memory that one of its processes had held before it: profiling takes some as well."""
    await _hub_is_there(state)
    memory_bytes = await _memory_when_settled(state, name, job)
    options = CaptureOptions(iterations=iterations)
    return await take_capture(state, None, options, name, None, wait=True, wait_for_job=True), memory_bytes


async def _memory_when_settled(state: StateDirectory, name: str, job: subprocess.Popen[bytes]) -> int | None:
    """The peak of one process once all have made some steps; None where they make none that are counted."""
    end = time.monotonic() + _SETTLES_WITHIN_S
    while job.poll() is None and time.monotonic() < end:
        async with HubClient(state) as hub:
            jobs = group_jobs(await hub.fleet())
        trainers = [one for running in jobs if running.job.name == name for one in running.trainers()]
        if trainers and all(one.step.step >= _SETTLED_STEPS for one in trainers):
            peaks = [peak for one in trainers if (peak := _peak_bytes(one.pid)) is not None]
            return max(peaks, default=None)
        await asyncio.sleep(_LOOK_EVERY_S)
    return None


def _peak_bytes(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


async def _hub_is_there(state: StateDirectory) -> None:
    for _ in range(600):
        if state.hub() is not None:
            return
        await asyncio.sleep(0.1)
    raise Failure("the hub did not start", details=last_lines(state.path.parent / "up.log"))


def _conclude(captures: list[SizedCapture], words: tuple[str, ...], memory_bytes: float | None) -> SweepResult:
    line, memory = fit_time(captures), fit_memory(captures)
    size, reason = recommend(captures, memory_bytes)
    rows = []
    for one in captures:
        middle = median(one.iteration_ns)
        rows.append(
            SweepRow(
                batch_size=round(one.size),
                iteration_ns=middle,
                samples_per_s=one.size / middle * 1e9,
                memory_bytes=one.memory_bytes,
                iterations=len(one.iteration_ns),
            )
        )
    return SweepResult(
        rows=rows,
        slope_ns=line.slope,
        constant_ns=line.constant,
        memory_slope_bytes=None if memory is None else memory.slope,
        memory_constant_bytes=None if memory is None else memory.constant,
        recommended=size,
        reason=reason,
        predicted_iteration_ns=line.at(size),
        predicted_memory_bytes=None if memory is None else memory.at(size),
        command=shlex.join(word.replace(_PLACE, str(size)) for word in words),
    )


def _say(result: SweepResult) -> str:
    lines = [
        f"{row.batch_size:>8}  {duration(round(row.iteration_ns)):>9}  {row.samples_per_s:>12,.1f} samples/s"
        + ("" if row.memory_bytes is None else f"  {size(row.memory_bytes):>9}")
        for row in result.rows
    ]
    value = result.predicted_iteration_ns
    lines.append(
        f"Take {result.recommended}: {result.reason}. An iteration takes {duration(round(value.value))} then "
        f"(95 %: {duration(round(value.low))} to {duration(round(value.high))})."
    )
    return "\n".join([*lines, result.command]) + "\n"
