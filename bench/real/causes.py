"""Captures programs with a planted cause of the table of known causes, and healthy ones: which cause is named, and how.

    python bench/real/causes.py [--only NAME]... [--times N] [--seconds S]

Each program of `rank.causes.registry` (programs/causes) is captured N times at 12 iterations while it trains, as are
programs that have a fault on one rank, and those that do the same without the cause. A capture counts where the cause
is the first known one of the report, with a line of the program if samples can name one; of a fault on one rank, where
the verdict names rank and cause. Then each is run with its cause and without, in turns, and nothing of ours beside it
(`pace.py`): the share of a step that leaving the cause out saves, beside the share that reports say. `off by` is how
far the time of an iteration is that the share foretells from the one measured without the cause.
Nothing here is a test: what misses its target is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

import msgspec  # noqa: E402
from capture import stop_family, stop_programs  # noqa: E402
from fleetprof_analyzer.findings.known_cause_kinds import KINDS  # noqa: E402
from fleetprof_api.report.report import Report  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402

ITERATIONS = 12
COMMANDS = ROOT / ".venv" / "bin"
TURNS = 3
START_DEADLINE_S = 120  # until a program trains
PATIENCE = 5  # times the seconds that a turn lasts
HEALTHY = ("plain/accumulation", "plain/fsdp2", "plain/streaming", "plain/plain_loop", "causes/healthy")
WITHOUT_LINE = ("garbage_collection", "repeated_reduction", "few_cores", "unused_parameters")
"""Causes that are no line's."""


@dataclass(frozen=True)
class Planted:
    """A program, and the cause that it has; "" where it has none. `rank`: the one that has it, None of all alike."""

    file: str
    cause: str = ""
    rank: int | None = None

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]

    @property
    def path(self) -> Path:
        return HERE / "programs" / f"{self.file}.py"

    def words(self, *script: str) -> list[str]:
        """The command line of its user; `script`: another one that runs it."""
        script = script or (str(self.path),)
        if "init_process_group" in self.path.read_text():
            return [str(COMMANDS / "torchrun"), "--standalone", "--nproc-per-node", "2", *script]
        return [str(COMMANDS / "python"), *script]


@dataclass(frozen=True)
class MeasuredPaces:
    """Mean times of a step, ns: the median of all turns."""

    with_cause_ns: float
    without_ns: float

    @property
    def gain(self) -> float:
        """The share of a step that it takes without the cause less."""
        return 1 - self.without_ns / self.with_cause_ns


@dataclass(frozen=True)
class NamedCause:
    """A report's word on the cause of lost time: the first known one, or the verdict's."""

    cause: str
    gain: float
    file: str


LATE = (Planted("causes/core_limited", "few_cores", rank=1),)
_OF_VERDICTS = {"cpu_contention": "few_cores"}
"""The verdict's own names of known causes."""
PROGRAMS = [*(Planted(kind.program, kind.name) for kind in KINDS), *LATE, *map(Planted, HEALTHY)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=[one.name for one in PROGRAMS], help="may be repeated")
    parser.add_argument("--times", type=int, default=10, help="captures of each program")
    parser.add_argument("--seconds", type=float, default=5, help="of each turn alone; 0: none")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {ITERATIONS} iterations a capture", flush=True)
    print(
        "program                cause               captured  right  with its line  gain            alone   off by  "
        "other causes",
        flush=True,
    )
    for program in PROGRAMS:
        if program.name in (given.only or [one.name for one in PROGRAMS]):
            reports = _capture(program, given.times)
            alone = _measure_alone(program, given.seconds) if program.cause and given.seconds else None
            print(_row(program, reports, alone), flush=True)


def _capture(program: Planted, times: int) -> list[Report]:
    """The reports of so many captures of one run."""
    with tempfile.TemporaryDirectory(prefix="fleetprof-causes-") as name:
        local = make_local(Path(name))
        try:
            local.up()
            local.connection.close()
            job = local.run_command("planted", *program.words())
            found = []
            for number in range(times):
                found += _capture_once(local, wait=number == 0)
                if job.process.poll() is not None:
                    print(job.output.read_text()[-2000:], file=sys.stderr)
                    break
                time.sleep(1)
            return found
        finally:
            stop_programs(local)
            local.close()


def _capture_once(local: Local, *, wait: bool) -> list[Report]:
    flags = ["--wait-for-job"] if wait else []
    words = ["capture", "planted", "--iterations", str(ITERATIONS), "-o", "json", *flags]
    try:
        status = json.loads(local.command(*words, timeout=600).stdout)
    except (ValueError, subprocess.TimeoutExpired):
        return []
    paths = [path for path in local.state.rglob("report.json") if path.parent.name == status.get("uid")]
    return [msgspec.json.decode(path.read_bytes(), type=Report) for path in paths]


def _measure_alone(program: Planted, seconds: float) -> MeasuredPaces | None:
    """None where a turn failed, or took longer than its deadline."""
    found: dict[str, list[int]] = {"1": [], "0": []}
    for fault in TURNS * ["1", "0"]:
        if (pace_ns := _measure_pace(program, fault, seconds)) is not None:
            found[fault].append(pace_ns)
    return MeasuredPaces(median(found["1"]), median(found["0"])) if found["1"] and found["0"] else None


def _measure_pace(program: Planted, fault: str, seconds: float) -> int | None:
    """The time of a step in ns; None where the program ends before it says one, or does not say it in time."""
    words = program.words(str(HERE / "pace.py"), str(program.path), str(seconds))
    running = subprocess.Popen(words, env=os.environ | {"FAULT": fault}, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    late = threading.Timer(START_DEADLINE_S + PATIENCE * seconds, stop_family, (running.pid,))
    late.start()
    try:
        line = next((line for line in running.stdout if line.startswith("pace ")), None)
    finally:
        late.cancel()
        late.join()
        stop_family(running.pid)
        running.stdout.close()
        running.wait()
    return None if line is None else int(line.split()[1])


def _read_causes(program: Planted, report: Report) -> list[NamedCause]:
    """Reads a report's word on causes that all ranks have, or of the rank that has one."""
    found = report.stragglers
    if program.rank is not None and found is not None and found.verdict == "straggler":
        cause = str(found.ranks[0].cause)
        return [NamedCause(_OF_VERDICTS.get(cause, cause), found.gain, "")] * (found.ranks[0].rank == program.rank)
    return [
        NamedCause(one.kind, one.gain_permille / 1000, "" if one.place is None else one.place.file)
        for one in report.findings
        if one.measure == "ranks.causes" and (program.rank is None or one.ranks == [program.rank])
    ]


def _row(program: Planted, reports: list[Report], alone: MeasuredPaces | None = None) -> str:
    known = [_read_causes(program, report) for report in reports]
    right = [found[0] for found in known if found and found[0].cause == program.cause]
    lines = [one for one in right if one.file.endswith(f"{program.name}.py")]
    others = sorted({one.cause for found in known for one in found} - {program.cause})
    count = len(right) if program.cause else sum(not found for found in known)
    has_line = program.cause and program.rank is None and program.cause not in WITHOUT_LINE
    line = f"{len(lines)} of {len(right)}" if has_line else "-"
    gains = sorted(100 * one.gain for one in right)
    gain = f"{gains[0]:.0f} to {gains[-1]:.0f} %" if gains else "-"
    measured, off = "-", "-"
    if alone is not None:
        measured = f"{100 * alone.gain:.0f} %"
        if gains:
            foretold = (1 - median(gains) / 100) * alone.with_cause_ns
            off = f"{100 * abs(foretold / alone.without_ns - 1):.0f} %"
    return (
        f"{program.name:<22} {program.cause or 'none':<19} {len(reports):>8}  {count:>5}  {line:<13}  {gain:<14}  "
        f"{measured:<6}  {off:<6}  {', '.join(others) or '-'}"
    )


if __name__ == "__main__":
    main()
