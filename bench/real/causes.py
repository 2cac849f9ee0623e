"""Captures programs with a planted cause of the table of known causes, and healthy ones: which cause is named, and how.

    python bench/real/causes.py [--only NAME]... [--times N] [--turns N] [--seconds S]

Each program of `rank.causes.registry` (programs/causes) is captured N times at 12 iterations while it trains, as are
programs that have a fault on one rank, and those that do the same without the cause. A capture counts where the cause
is the first known one of the report, with a line of the program if samples can name one; of a fault on one rank, where
the verdict names rank and cause. Then each runs with its cause and without, in turns of whole periods that take the
machine's changes alike, and nothing of ours beside it (`pace.py`): the share of a step that leaving the cause out
saves, of all turns and from the least pair to the most, beside the share that reports say. `off by` is how far the
time of an iteration is that the reports' mean share foretells from the one measured without the cause.
`refused` counts captures that were ended for what they did to the job: none, but each one of `harmed`, whose recording
of stacks makes its iterations five times as long. Nothing here is a test: what misses its target is printed.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

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
PERIODS = {"checkpoints": 4, "collector": 21, "evaluations": 5, "short_epochs": 6}
"""Steps until a program does the same again, where one alone is not the same."""
START_DEADLINE_S = 120  # until a program trains
PATIENCE = 5  # times the seconds that a turn lasts
HEALTHY = ("plain/accumulation", "plain/fsdp2", "plain/streaming", "plain/plain_loop", "causes/healthy")
WITHOUT_LINE = ("garbage_collection", "repeated_reduction", "few_cores", "unused_parameters")
"""Causes that are no line's."""


@dataclass(frozen=True)
class Planted:
    """A program, and the cause that it has; "" where it has none. `rank`: the one that has it, None of all alike.

    `flags`: of its captures; `harmed`: by a recording with these.
    """

    file: str
    cause: str = ""
    rank: int | None = None
    flags: tuple[str, ...] = ()
    harmed: bool = False

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
    """Mean times of a step with the cause and without, ns, of each pair of turns that followed one another."""

    pairs: list[tuple[float, float]]

    @property
    def ratio(self) -> float:
        """The time of a step without the cause, as a share of one with it."""
        return sum(without for _, without in self.pairs) / sum(with_cause for with_cause, _ in self.pairs)

    def tell(self) -> str:
        """The share of a step that leaving the cause out saves; from the least pair to the most."""
        each = sorted(100 * (1 - without / with_cause) for with_cause, without in self.pairs)
        return f"{100 * (1 - self.ratio):.0f} % ({each[0]:.0f} to {each[-1]:.0f})"


@dataclass(frozen=True)
class NamedCause:
    """A report's word on the cause of lost time: the first known one, or the verdict's."""

    cause: str
    gain: float
    file: str


LATE = (Planted("causes/core_limited", "few_cores", rank=1),)
HARMED = (Planted("causes/harmed", flags=("--collect", "Stacks"), harmed=True),)
REFUSED = ("CanaryHarmed", "Slowdown")
_OF_VERDICTS = {"cpu_contention": "few_cores"}
"""The verdict's own names of known causes."""
PROGRAMS = [*(Planted(kind.program, kind.name) for kind in KINDS), *LATE, *map(Planted, HEALTHY), *HARMED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=[one.name for one in PROGRAMS], help="may be repeated")
    parser.add_argument("--times", type=int, default=10, help="captures of each program")
    parser.add_argument(
        "--turns", type=int, default=6, help="of each program alone, with its cause and without; 0: none"
    )
    parser.add_argument("--seconds", type=float, default=2, help="of each turn alone")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {ITERATIONS} iterations a capture", flush=True)
    print(
        f"{'program':<22} {'cause':<19} captured  refused  right  with its line  {'gain':<14}  {'alone':<16}  off by  "
        "other causes",
        flush=True,
    )
    for program in PROGRAMS:
        if program.name in (given.only or [one.name for one in PROGRAMS]):
            reports, refused = _capture(program, given.times)
            alone = _measure_alone(program, given.turns, given.seconds) if program.cause and given.turns else None
            print(_row(program, reports, refused, alone), flush=True)


def _capture(program: Planted, times: int) -> tuple[list[Report], int]:
    """(the reports of so many captures of one run, how many were refused for what they did to the job)."""
    with tempfile.TemporaryDirectory(prefix="fleetprof-causes-") as name:
        local = make_local(Path(name))
        try:
            local.up()
            local.connection.close()
            job = local.run_command("planted", *program.words())
            found: list[Report] = []
            refused = 0
            for number in range(times):
                reports, words = _capture_once(local, [*program.flags, *["--wait-for-job"] * (number == 0)])
                found += reports
                refused += any(reason in words for reason in REFUSED)
                if job.process.poll() is not None:
                    print(job.output.read_text()[-2000:], file=sys.stderr)
                    break
                time.sleep(1)
            return found, refused
        finally:
            stop_programs(local)
            local.close()


def _capture_once(local: Local, flags: list[str]) -> tuple[list[Report], str]:
    """(its report, if it has one; what it said)."""
    words = ["capture", "planted", "--iterations", str(ITERATIONS), "-o", "json", *flags]
    try:
        text = local.command(*words, timeout=600).stdout
        status = json.loads(text)
    except (ValueError, subprocess.TimeoutExpired):
        return [], ""
    paths = [path for path in local.state.rglob("report.json") if path.parent.name == status.get("uid")]
    if status.get("phase") != "Complete" and not paths:
        print(text[-600:], file=sys.stderr, flush=True)
    return [msgspec.json.decode(path.read_bytes(), type=Report) for path in paths], text


def _measure_alone(program: Planted, turns: int, seconds: float) -> MeasuredPaces | None:
    """None where a program ends before its turns do, or takes longer than its deadline."""
    with ExitStack() as stack:
        pacers = {fault: stack.enter_context(_start_pacer(program, fault, seconds)) for fault in ("1", "0")}
        for pacer in pacers.values():
            _take_turn(pacer, START_DEADLINE_S)  # what it compiles and allocates first
        pairs = []
        for turn in range(turns):
            order = ("1", "0") if turn % 2 == 0 else ("0", "1")
            paces = {fault: _take_turn(pacers[fault], PATIENCE * seconds + PATIENCE) for fault in order}
            if paces["1"] is None or paces["0"] is None:
                return None
            pairs.append((paces["1"], paces["0"]))
        return MeasuredPaces(pairs)


@contextmanager
def _start_pacer(program: Planted, fault: str, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A program that takes turns; it and all that it started end with the context."""
    words = program.words(str(HERE / "pace.py"), str(program.path), str(PERIODS.get(program.name, 1)), str(seconds))
    pipe = subprocess.PIPE
    running = subprocess.Popen(words, env=os.environ | {"FAULT": fault}, stdin=pipe, stdout=pipe, text=True)
    try:
        yield running
    finally:
        stop_family(running.pid)
        running.communicate()


def _take_turn(pacer: subprocess.Popen[str], deadline_s: float) -> float | None:
    """The mean time of a step in ns; None where the program does not say it in time."""
    assert pacer.stdin is not None
    assert pacer.stdout is not None
    late = threading.Timer(deadline_s, stop_family, (pacer.pid,))
    late.start()
    try:
        pacer.stdin.write("turn\n")
        pacer.stdin.flush()
        line = next((line for line in pacer.stdout if line.startswith("turn ")), None)
    except BrokenPipeError:
        line = None
    finally:
        late.cancel()
        late.join()
    return None if line is None else int(line.split()[1]) / int(line.split()[2])


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


def _row(program: Planted, reports: list[Report], refused: int, alone: MeasuredPaces | None = None) -> str:
    known = [_read_causes(program, report) for report in reports]
    right = [found[0] for found in known if found and found[0].cause == program.cause]
    lines = [one for one in right if one.file.endswith(f"{program.name}.py")]
    others = sorted({one.cause for found in known for one in found} - {program.cause})
    count = refused if program.harmed else len(right) if program.cause else sum(not found for found in known)
    has_line = program.cause and program.rank is None and program.cause not in WITHOUT_LINE
    line = f"{len(lines)} of {len(right)}" if has_line else "-"
    gains = sorted(100 * one.gain for one in right)
    gain = f"{gains[0]:.0f} to {gains[-1]:.0f} %" if gains else "-"
    measured, off = "-", "-"
    if alone is not None:
        measured = alone.tell()
        if gains:
            off = f"{100 * abs((1 - fmean(gains) / 100) / alone.ratio - 1):.0f} %"
    return (
        f"{program.name:<22} {program.cause or 'none':<19} {len(reports):>8}  {refused:>7}  {count:>5}  {line:<13}  "
        f"{gain:<14}  {measured:<16}  {off:<6}  {', '.join(others) or '-'}"
    )


if __name__ == "__main__":
    main()
