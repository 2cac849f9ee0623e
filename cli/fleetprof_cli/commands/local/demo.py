"""`fleetprof demo`: the whole way on this machine, with a small model: train, capture, report, and capture again.

Guarantees: where the first capture has too few iterations to tell who is late, as on a busy machine, the second has
more and is the one that is shown last. Everything goes through the same commands that a user has; all that it started
has ended when it ends, by process id, also by Ctrl-C, SIGTERM or SIGHUP at any moment; what it shows lies in OUT. A
person at a terminal gets the web UI at the end, when the training has stopped; a script gets the command for it.
"""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.words.verdict_reasons import MOST_ITERATIONS, round_iterations
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.oldest_torch import TOO_OLD_ADVICE, is_too_old
from fleetprof_api.quantities import size
from fleetprof_api.report.report import Report, read_report

from fleetprof_cli import training
from fleetprof_cli.capture.jobs import group_jobs
from fleetprof_cli.capture.request_flags import CaptureOptions
from fleetprof_cli.doctor.interpreter import find_torch
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.capture import take_capture
from fleetprof_cli.local.hub_client import HubClient, NoHub
from fleetprof_cli.local.interruption import Interruption
from fleetprof_cli.local.own_command import last_lines, start_own, stop_own
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.foreground import serve_until_stopped
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.ranges import IntegerRange
from fleetprof_cli.store_location import StoreLocation, open_store
from fleetprof_cli.terminal.reports import print_report
from fleetprof_cli.terminal.status_text import exit_code, failure_lines
from fleetprof_cli.typed_commands import name_program

_JOB: Final = "demo"
_HUB_WITHIN_S: Final = 60.0
_STEPPING_WITHIN_S: Final = 300.0
_SETTLED_STEPS: Final = 30
_MADE: Final = ("report.json", "report.html", "up.log", "job.log", "state", "store")


@click.command("demo")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/demo"),
    show_default=True,
    help="Where report.json, report.html and the capture go.",
)
@click.option("--ranks", type=IntegerRange(1, 64), default=4, show_default=True, help="Training processes.")
@click.option("--iterations", type=IntegerRange(1, 100), default=20, show_default=True, help="Iterations to capture.")
@click.option("--python", metavar="PATH", default=sys.executable, help="Interpreter with PyTorch (default: this one).")
@click.option("--hold", is_flag=True, help="Leave job, hub and web UI running until Ctrl-C, to try the other commands.")
def command(*, out: Path, ranks: int, iterations: int, python: str, hold: bool) -> None:
    """Train a small model on four ranks, capture it and show the report."""
    if os.sep in python:
        python = str(Path(python).absolute())  # its link, which a virtual environment needs, stays one
    facts = find_torch(python)
    if "torch" not in facts:
        raise Failure(
            f"the demo trains with PyTorch, and {python} has none: {facts.get('error', '')}",
            next_step="install it there (pip install torch), or name another interpreter: fleetprof demo --python PATH",
        )
    if is_too_old(facts["torch"]):
        raise Failure(
            f"PyTorch {facts['torch']} of {python} is too old to be captured",
            next_step=f"{TOO_OLD_ADVICE}, there or in another interpreter: fleetprof demo --python PATH",
        )
    say(f"PyTorch {facts['torch']}, Python {facts['python']}; {ranks} ranks on this machine's CPU")
    out = out.absolute()
    _clear(out)
    state = StateDirectory(out / "state")
    interruption = Interruption()
    with ExitStack() as cleanup:
        hub = start_own(out / "up.log", "up", "--no-ui", "--state", str(state.path), "--store", str(out / "store"))
        cleanup.callback(stop_own, hub, "hub")
        # PyTorch loads for longer than the hub does; a job may be there first.
        job = start_own(
            out / "job.log", "run", "--no-hub", "--state", str(state.path), "--name", _JOB, "--", *_train(python, ranks)
        )
        cleanup.callback(stop_own, job, "job")
        _await_hub(state, hub, out / "up.log")
        say("the job starts (its output: job.log); waiting until every rank has trained a little")
        interruption.run(_await_training(state, job, ranks, out / "job.log"))
        say(f"capturing {iterations} iterations on {ranks} ranks while it trains")
        first = interruption.run(_capture(state, iterations))
        more = choose_more_iterations(_show(out, first), iterations)
        if more is None:
            say("capturing once more, so that there is something to compare")
            second = interruption.run(_capture(state, iterations))
            _demand_report(second)
        else:
            say(f"{iterations} iterations are too few here to tell who is late; capturing {more}")
            second = interruption.run(_capture(state, more))
            _show(out, second)
        place, program = shlex.quote(str(state.path)), name_program()
        say(f"both captures:  {program} diff {first.uid} {second.uid} --state {place}")
        if hold:
            say(f"job and hub go on until Ctrl-C; try: {program} capture --state {place} --iterations 10")
            serve_until_stopped(state, state.store(), opens_browser=False)
        say("stopping the job and the hub")
    if sys.stdin.isatty() and sys.stderr.isatty() and not hold:
        say("job and hub have ended; the browser shows both captures until Ctrl-C")
        serve_until_stopped(state, state.store(), opens_browser=False)
    say(f"in the browser: {program} ui --state {place}")
    sys.exit(exit_code(first) or exit_code(second))


def choose_more_iterations(report: Report, iterations: int) -> int | None:
    """The number of iterations that decide the verdict, at most MOST_ITERATIONS; None where it is, or cannot be."""
    found = report.stragglers
    if found is None or found.verdict != "undecided" or iterations >= MOST_ITERATIONS:
        return None
    needed = 2 * iterations if found.candidate is None else round_iterations(found.candidate.iterations_needed)
    return min(max(needed, 2 * iterations), MOST_ITERATIONS)


def _clear(out: Path) -> None:
    """Makes OUT and removes what an earlier demo left in it, nothing else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in _MADE:
            path = out / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"cannot use {out}: {error.strerror}", next_step="choose another: --out DIR") from None


def _train(python: str, ranks: int) -> list[str]:
    """The command line that a user would type."""
    script = Path(training.__file__).parent / "train.py"
    launch = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    slow = ["--slow-rank", str(ranks // 2)] if ranks > 1 else []
    return [*launch, str(script), "--seconds", "3600", *slow]


def _await_hub(state: StateDirectory, hub: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _HUB_WITHIN_S
    while state.hub() is None:
        if hub.poll() is not None or time.monotonic() > end:
            raise Failure("the hub did not start:", details=last_lines(log))
        time.sleep(0.05)


async def _await_training(state: StateDirectory, job: subprocess.Popen[bytes], ranks: int, log: Path) -> None:
    """Returns once every rank trains steadily."""
    end = time.monotonic() + _STEPPING_WITHIN_S
    while True:
        if job.poll() is not None:
            raise Failure(f"the job ended with code {job.returncode}:", details=last_lines(log))
        if time.monotonic() > end:
            raise Failure(
                f"the job did not begin to train within {_STEPPING_WITHIN_S:.0f} s:",
                details=last_lines(log),
                next_step=f"fleetprof doctor --state {state.path}",
            )
        try:
            async with HubClient(state) as hub:
                jobs = group_jobs(await hub.fleet())
        except NoHub:
            jobs = []
        trainers = [process for running in jobs for process in running.trainers() if process.role == pb.TRAINER]
        if sum(process.step.step >= _SETTLED_STEPS for process in trainers) >= ranks:
            return
        await asyncio.sleep(0.25)


async def _capture(state: StateDirectory, iterations: int) -> pb.CaptureStatus:
    return await take_capture(state, None, CaptureOptions(iterations=iterations), _JOB, None, wait=True)


def _show(out: Path, status: pb.CaptureStatus) -> Report:
    """Copies the report into OUT and prints it. Raises Failure where there is none."""
    _demand_report(status)
    store = open_store(StoreLocation(directory=str(out / "store")))
    data = store.get(keys.report_key(status.namespace, status.uid))
    (out / "report.json").write_bytes(data)
    report = read_report(data)
    # The page's links and its hint lead from here, not from the store.
    traces = "store/" + keys.request_prefix(status.namespace, status.uid).rstrip("/")
    again = f"{name_program()} report {status.uid} --state {shlex.quote(str(out / 'state'))}"
    (out / "report.html").write_text(render_page(report, traces, again), "utf-8")
    print_report(report)
    folder = out / "store" / keys.request_prefix(status.namespace, status.uid)
    stored = sum(rank.compressed_bytes for rank in status.ranks)
    say(f"the report:  {out / 'report.html'}")
    say(f"for tools:   {out / 'report.json'}")
    say(f"the capture: {folder} ({size(stored)} of traces)")
    return report


def _demand_report(status: pb.CaptureStatus) -> None:
    if not status.report_location:
        code = exit_code(status) or ExitCode.CAPTURE_FAILED
        raise Failure("the capture ended without a report", details=failure_lines(status), code=code)
