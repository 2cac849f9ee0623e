"""Jobs that profile themselves by PyTorch, Lightning, Hugging Face's Trainer and accelerate, captured in each phase.

    python bench/capture/own_profilers.py [--torch VERSION]... [--kind KIND]... [--times N] [--at-once N]
        [--home FOLDER]

Makes an environment for each PyTorch in a temporary folder (--home keeps it) and prints a table: what each capture
ended as, whether each trace of the job's own that came meanwhile is that of a run without us (the same operators,
annotations, Python functions in each step, none of them ours), and the job's exit code. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import grpc  # noqa: E402
from fleetprof_api.hub import hub_pb2 as pb  # noqa: E402
from fleetprof_api.ledger import RankState  # noqa: E402
from harness.training.local_job import LocalJob  # noqa: E402
from harness.training.local_system import Local, make_local, outcome  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

PACKAGES = ("lightning", "transformers", "accelerate")
JOB = HERE / "own_profiled_job.py"
KINDS = ("plain", "plain, stacks, shapes, memory", "plain, torch.compile", *PACKAGES)
PACE_S = 0.1
LONG, SHORT = 100, 5  # iterations: beyond the gap, and well within it
PATIENCE_S = 400.0


@dataclass(frozen=True)
class CaptureTiming:
    """The times at which a capture is asked for and taken back."""

    name: str
    asked_in: str
    iterations: int
    cancelled_in: str = ""


CASES = [
    CaptureTiming("asked in wait", "NONE", SHORT),
    CaptureTiming("asked in warm-up", "WARMUP", SHORT),
    CaptureTiming("asked in active", "RECORD", SHORT),
    CaptureTiming("asked in export", "EXPORT", SHORT),
    CaptureTiming("recording when the warm-up comes", "NONE", LONG),
    CaptureTiming("recording, cancelled in wait", "NONE", LONG, "NONE"),
    CaptureTiming("recording, cancelled in warm-up", "NONE", LONG, "WARMUP"),
    CaptureTiming("recording, cancelled in active", "NONE", LONG, "RECORD"),
    CaptureTiming("recording, cancelled in export", "NONE", LONG, "EXPORT"),
]
EXIT = CaptureTiming("recording when the job exits", "NONE", LONG)


@dataclass
class TimingOutcome:
    """The outcome of one case: the ends of its captures, and which of the job's own traces came meanwhile."""

    ends: list[str] = field(default_factory=list)
    traces: list[int] = field(default_factory=list)


class Followed:
    """A job's phases, as it prints them."""

    def __init__(self, output: Path, process: subprocess.Popen) -> None:
        self._output, self._process = output, process

    def phases(self) -> list[str]:
        return re.findall(r"^phase (\w+)$", self._output.read_text(errors="replace"), re.MULTILINE)

    def enter(self, phase: str) -> None:
        """Returns when the job next comes into a phase."""
        before = self.phases()
        self._wait(lambda now: phase in now[len(before) :])

    def _wait(self, is_so) -> None:
        wait_until(lambda: is_so(self.phases()) or self._process.poll() is not None, "a phase", PATIENCE_S)
        if self._process.poll() is not None:
            raise EOFError(f"the job ended with {self._process.returncode}")


def read_trace(path: Path) -> str:
    """The content of each step of a trace, in a form to be compared; ours would stand out by its name."""
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") in ("X", "i") and "name" in e]
    starts = sorted(e["ts"] for e in events if e["name"].startswith("ProfilerStep"))
    steps: list[Counter] = [Counter() for _ in range(len(starts) + 1)]
    for event in events:
        if event.get("cat") in ("cpu_op", "user_annotation", "python_function", "cpu_instant_event"):
            name = re.sub(r"0x[0-9a-f]+|#\d+", "", event["name"])
            steps[sum(start <= event["ts"] for start in starts)][event["cat"] + " " + name] += 1
    return json.dumps([sorted(step.items()) for step in steps])


def find_traces(folder: Path) -> list[Path]:
    """The traces of a job, in the order in which it wrote them."""
    return sorted(folder.rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)


def run_alone(python: Path, kind: str, folder: Path) -> set[str]:
    """The job's own traces without us, of three cycles; PyTorch counts steps where a daemon is looked for."""
    folder.mkdir()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PACE": "0.005", "KINETO_USE_DAEMON": "1"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [python, JOB, kind, folder], env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    try:
        wait_until(lambda: len(find_traces(folder)) > 3 or process.poll() is not None, "three traces", PATIENCE_S)
    finally:
        (folder / "stop").touch()
        assert process.wait(PATIENCE_S) == 0, (folder / "output").read_text()[-3000:]
    return {read_trace(path) for path in find_traces(folder)[:3]}


def play(local: Local, job: LocalJob, case: CaptureTiming, result: TimingOutcome) -> None:
    """One capture; returns when it has ended, in the gap after it at the latest."""
    followed = Followed(job.output, job.process)
    followed.enter(case.asked_in)
    if case.asked_in == "NONE":
        time.sleep(0.3)
    before = followed.phases().count("EXPORT")
    uid = local.submit(job.name, iterations=case.iterations, deadline_s=90, limits={"maxSlowdownPercent": 0})
    if case.cancelled_in or case is EXIT:
        with contextlib.suppress(AssertionError):
            local.await_state(uid, RankState.STARTED)
        if case is EXIT:
            (job.folder / "traces" / "stop").touch()
        elif case.cancelled_in != "NONE":
            followed.enter(case.cancelled_in)
        if case.cancelled_in:
            with contextlib.suppress(grpc.RpcError):
                local.cancel(uid)
    result.ends.append(describe(local.await_end(uid, PATIENCE_S)))
    if case is not EXIT:
        followed.enter("EXPORT")
        followed.enter("NONE")
    result.traces += range(before, followed.phases().count("EXPORT"))


def describe(status: pb.CaptureStatus) -> str:
    """The capture's end in a word or two."""
    return outcome(status)[1] + "".join(sorted({f" ({line.reason})" for line in status.ranks if line.reason}))


def measure(local: Local, version: str, python: Path, kind: str, times: int) -> None:
    """Prints the rows of one job on one PyTorch."""
    name = f"{kind.replace(', ', '-').replace(' ', '-').replace('.', '-')}-{version.replace('.', '-')}"
    alone = run_alone(python, kind, local.folder / f"alone-{name}")
    traces = local.folder / name / "traces"
    words = [str(python), str(JOB), kind, str(traces)]
    job = local.run_command(name, "sh", "-c", f'mkdir "{traces}"; exec "$@"', "sh", *words)
    results = {case: TimingOutcome() for case in [*CASES, EXIT]}
    died = ""
    try:
        Followed(job.output, job.process).enter("NONE")
        for _ in range(times):
            for case in CASES:
                died = f"{case.name}: "
                play(local, job, case, results[case])
        play(local, job, EXIT, results[EXIT])
        died = ""
    except (EOFError, AssertionError) as problem:
        died += str(problem)
    (traces / "stop").touch()
    code = job.process.wait(PATIENCE_S)
    found = [read_trace(path) for path in find_traces(traces)]
    package = f"{kind} {installed(python, kind)}".strip()
    for case, result in results.items():
        equal = sum(found[trace] in alone for trace in result.traces if trace < len(found))
        ends = ", ".join(f"{count} {end}" for end, count in Counter(result.ends).items())
        own = f"{equal} of {len(result.traces)}"
        print(f"| {package} | {version} | {case.name} | {code} | {own} | {ends} |", flush=True)
    ours = sum("fleetprof" in trace for trace in found)
    equal = sum(trace in alone for trace in found)
    print(
        f"| {package} | {version} | all | {code} | {equal} of {len(found)} ({len(alone)} without us, {ours} with our "
        f"frames) | {died} |",
        flush=True,
    )


def installed(python: Path, package: str) -> str:
    """The version of a package in an environment; "" where there is none of that name."""
    script = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=False).stdout.strip()


def make_environment(home: Path, version: str) -> Path:
    """An interpreter with this PyTorch and the packages."""
    folder = home / f"torch-{version}"
    python = folder / "bin" / "python"
    if not python.exists():
        uv = ROOT / ".ci" / "uv"
        subprocess.run([uv, "venv", "-q", "--python", "3.11", folder], check=True)
        words = [uv, "pip", "install", "-q", "--python", python]
        subprocess.run([*words, f"torch=={version}", *PACKAGES, "numpy>=2.2", "setuptools"], check=True)
    return python


@contextlib.contextmanager
def open_home(given: Path | None) -> Iterator[Path]:
    """The place of the environments: a folder of the caller's, or one that is removed."""
    if given is not None:
        yield given
    else:
        with tempfile.TemporaryDirectory(prefix="fleetprof-own-") as folder:
            yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--torch", action="append", help="a version of PyTorch; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="a job; may be repeated")
    parser.add_argument("--times", type=int, default=3, help="how often each case is played")
    parser.add_argument("--at-once", type=int, default=3, help="how many jobs run at a time")
    parser.add_argument("--home", type=Path, help="folder for the environments, kept")
    given = parser.parse_args()
    with open_home(given.home) as home, tempfile.TemporaryDirectory(prefix="fleetprof-own-") as folder:
        local = make_local(Path(folder))
        local.environment["PACE"] = str(PACE_S)
        todo = [
            (version, make_environment(home, version), kind)
            for version in given.torch or ["2.15.0", "2.13.0"]
            for kind in given.kind or KINDS
        ]
        try:
            local.up()
            print("| package | PyTorch | capture | exit code | own traces equal | the capture ended as |", flush=True)
            print("|---|---|---|---|---|---|", flush=True)
            seats = threading.Semaphore(given.at_once)

            def run(version: str, python: Path, kind: str) -> None:
                with seats:
                    own_channel = replace(local, connection=contextlib.ExitStack())
                    measure(own_channel, version, python, kind, given.times)

            threads = [threading.Thread(target=run, args=row, daemon=True) for row in todo]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            local.close()


if __name__ == "__main__":
    main()
