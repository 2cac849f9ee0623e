"""Captures a real program as its user does: once from the moment it is launched, once while it trains.

Guarantees: each program has a hub and a state of its own; every process that was started is stopped, by its id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from catalog import Program
from harness.training.local_job import processes_of
from harness.training.local_system import Local, make_local
from harness.waiting import wait_until

ITERATIONS = 20
DEADLINE_S = 900  # what a capture has by itself: torch.compile takes minutes where others want the same two cores
ANNOTATED = Path(__file__).parent / "truth" / "annotated.py"


@dataclass
class Captured:
    """One capture: how it ended, after how long, and the folder of its traces and its report."""

    phase: str
    code: int
    seconds: float
    states: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    folder: Path | None = None

    @property
    def whole(self) -> bool:
        """Every rank's trace came, at the first try."""
        return self.code == 0 and not self.problem


def capture_twice(
    program: Program, commands: Path, folder: Path, stamps: Path, say: Callable[[str], None]
) -> list[Captured]:
    """Launches the program and captures it at once, and again when that has ended; annotations go to `stamps`."""
    local = make_local(folder)
    (folder / "home").mkdir()
    local.environment |= {
        "BENCH_STAMPS": str(stamps),
        "BENCH_ANNOTATED": str(ANNOTATED),
        "PATH": f"{commands}{os.pathsep}{local.environment['PATH']}",
        "DS_ACCELERATOR": "cpu",
        "IPYTHONDIR": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
    }
    try:
        local.up()
        local.connection.close()
        say("launched")
        job = local.run_command(
            program.job, "sh", "-c", f'cd "{folder}" && exec "$@"', "sh", *program.command(commands)
        )
        found = []
        for phase in ("start-up", "steady"):
            found.append(one := _capture(local, program, phase))
            say(f"{phase}: {'every rank' if one.whole else one.problem} after {one.seconds:.0f} s")
            if job.process.poll() is not None:
                break
            time.sleep(1)
        if not all(one.whole for one in found):
            (folder / "output").write_bytes(job.output.read_bytes()[-20_000:])
        return found
    finally:
        stop_programs(local)
        local.close()


def _capture(local: Local, program: Program, phase: str) -> Captured:
    """`fleetprof capture`, as it is typed."""
    flags = ["--wait-for-job"] if phase == "start-up" else []
    words = ["capture", program.job, "--iterations", str(ITERATIONS), "-o", "json"]
    began = time.monotonic()
    try:
        process = local.command(*words, *flags, timeout=DEADLINE_S + 90)
    except subprocess.TimeoutExpired:
        return Captured(phase, -1, time.monotonic() - began, problem="capture did not end")
    result = Captured(phase, process.returncode, time.monotonic() - began)
    try:
        status = json.loads(process.stdout)
    except ValueError:
        result.problem = (process.stderr or process.stdout).strip()[-300:] or f"exit code {process.returncode}"
        return result
    result.states = {str(line["rank"]): line["state"] for line in status.get("ranks", [])}
    came = sum(state == "UPLOADED" for state in result.states.values())
    if process.returncode != 0 or came != program.ranks:
        result.problem = (
            f"{came} of {program.ranks} ranks, exit code {process.returncode}: {process.stderr.strip()[-200:]}"
        )
    found = [path.parent for path in local.state.rglob("report.json") if path.parent.name == status.get("uid")]
    result.folder = found[0] if found else None
    return result


def stop_programs(local: Local) -> None:
    """Ends the programs, which train without end: those that the jobs started first, then `fleetprof run` itself."""
    for job in local.jobs:
        stop_family(job.process.pid, but="fleetprof_")
        try:
            job.process.wait(40)
        except subprocess.TimeoutExpired:
            continue


def stop_family(pid: int, but: str | None = None) -> None:
    """Ends a process and all that it started, by their ids; `but`: a part of commands that are left to end."""
    family = [one for one, _, command in processes_of(pid) if but is None or but not in command]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in family:
            _signal(one, number)
        try:
            wait_until(lambda: not any(_lives(one) for one in family), "their end", 8)
            break
        except AssertionError:
            continue


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
