"""Right rank, right cause, right line, no false alarm: real jobs with a planted fault, captured as a user does it.

    python bench/faults/planted_faults.py [--times N] [--cases A,B] [--ranks 2,4] [--iterations 20,10] [--seed S]
        [--keep FOLDER] [-o json]
    python bench/faults/planted_faults.py --judge FOLDER

Each case is one job (planted_job.py under torchrun, gloo), captured N times for each length of the window through
`fleetprof up`, `run` and `capture`; the seed draws the rank that is at fault. The verdict is read from report.json.
--keep leaves the captures in FOLDER, and --judge FOLDER analyses them once more, without any job: for changes of the
analyzer. The whole table goes to bench/results/. A line is right where the report's place lies in planted_job.py on a
line that is marked for the fault, or in the function that holds one.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import msgspec  # noqa: E402
from fleetprof_analyzer.capture.folder import analyze_directory  # noqa: E402
from harness.training.local_system import Local, make_local, wait_until  # noqa: E402

JOB = HERE / "planted_job.py"
PATIENCE_S = 300.0
_WHOLE = 5  # captures of each kind; a run of so many of all cases is kept in bench/results


ALARMS = ("straggler", "slow_link", "heavy_stage", "moving_imbalance")


@dataclass(frozen=True)
class Truth:
    """What a report must say of a fault: the verdict, and one of the causes; `by_host` where a line is asked for."""

    causes: tuple[str, ...]
    verdict: str = "straggler"
    by_host: bool = True


CASES = {
    "loader": Truth(("data_loading",)),
    "disk": Truth(("data_loading",)),
    "generator": Truth(("data_loading",)),
    "busy_core": Truth(("cpu_contention",), by_host=False),
    "contention": Truth(("cpu_contention",), by_host=False),
    "collect": Truth(("garbage_collection",)),
    "item": Truth(("host",)),
    "hash": Truth(("host",)),
    "python": Truth(("host",)),
    "longer": Truth(("unequal_work",), by_host=False),
    "backward_hook": Truth(("host",)),
    "checkpoint": Truth(("host",)),
    "rotating": Truth(("host",), verdict="moving_imbalance"),
    "slow_everywhere": Truth(("data_loading",), verdict="nobody"),
    "none": Truth((), verdict="nobody", by_host=False),
    "generator_none": Truth((), verdict="nobody", by_host=False),
}


@dataclass(frozen=True)
class Asked:
    """One capture of one job."""

    case: str
    ranks: int
    iterations: int
    culprit: int
    number: int


@dataclass(frozen=True)
class Answer:
    """What the report said of it; `line` is None where no place is given or asked for."""

    asked: Asked
    verdict: str
    named: tuple[int, ...]
    said: tuple[str, ...]  # causes
    place: str
    rank: bool
    cause: bool
    line: bool | None
    undecided: bool
    reason: str
    gain: float


@cache
def planted_lines(job: Path) -> dict[str, set[int]]:
    """Fault -> the lines of the job that are marked for it."""
    found: dict[str, set[int]] = {}
    for number, text in enumerate(job.read_text().splitlines(), 1):
        if marked := re.search(r"# planted: ([\w ]+)$", text):
            for case in marked[1].split():
                found.setdefault(case, set()).add(number)
    return found


@cache
def _functions(job: Path) -> list[range]:
    """The lines of each function that holds nothing but a fault: `main` is too long to be a place."""
    nodes = [node for node in ast.walk(ast.parse(job.read_text())) if isinstance(node, ast.FunctionDef)]
    return [range(node.lineno, (node.end_lineno or 0) + 1) for node in nodes if node.name not in ("main", "generate")]


def is_right_line(job: Path, case: str, file: str, line: int) -> bool:
    if not file.endswith(JOB.name):
        return False
    marked = planted_lines(job).get(case, set())
    return line in marked or any(line in lines and marked & set(lines) for lines in _functions(job))


def judge(asked: Asked, report: dict[str, Any], job: Path = JOB) -> Answer:
    """The report against the truth; `job`: the program as it ran."""
    truth = CASES[asked.case]
    found = report.get("stragglers") or {"verdict": "none", "ranks": []}
    named = tuple(one["rank"] for one in found["ranks"])
    causes = [one["cause"] for one in found["ranks"][:1]]
    places = [one["place"] for one in found["ranks"][:1] if one.get("place")]
    if truth.verdict != "straggler":
        # Nobody is to be named; what it is stands with the verdict and in the findings.
        causes = [found["cause"]] if found.get("cause") else []
        places = [found["place"]] if found.get("place") else []
        for finding in report["findings"]:
            causes.append(finding["kind"])
            places += [finding["place"]] if finding.get("place") else []
    right_verdict = found["verdict"] == truth.verdict
    rank = right_verdict and named[:1] == ((asked.culprit,) if truth.verdict == "straggler" else ())
    place = places[0] if places else None
    line = None
    if truth.by_host and place is not None:
        line = is_right_line(job, asked.case, place["file"], place["line"])
    return Answer(
        asked=asked,
        verdict=found["verdict"],
        named=named,
        said=tuple(causes),
        place="" if place is None else f"{place['file'].rpartition('/')[2]}:{place['line']} {place['function']}",
        rank=rank,
        cause=rank and (not truth.causes or bool(set(truth.causes) & set(causes))),
        line=line,
        undecided=found["verdict"] == "undecided",
        reason=found.get("reason", ""),
        gain=found.get("gain", 0.0),
    )


def _environment(local: Local, asked: Asked) -> dict[str, str]:
    folder = local.folder / f"{_name(asked)}-files"
    folder.mkdir()
    return {"PLANT": asked.case, "PLANT_RANK": str(asked.culprit), "PLANT_FOLDER": str(folder)}


def _name(asked: Asked) -> str:
    return f"{asked.case.replace('_', '-')}-{asked.ranks}"


def play(local: Local, job: Sequence[Asked]) -> Iterator[tuple[Asked, Path]]:
    """One job and its captures; the folder of each."""
    first = job[0]
    variables = _environment(local, first)
    folder = Path(variables["PLANT_FOLDER"])
    words = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable]
    words += ["-m", "torch.distributed.run", "--nproc-per-node", str(first.ranks), "--standalone", str(JOB)]
    running = local.run_command(_name(first), *words)
    try:
        wait_until(
            lambda: (folder / "progress").exists() or running.process.poll() is not None, "iterations", PATIENCE_S
        )
        for asked in job:
            taken = local.command(
                "capture", running.name, "--iterations", str(asked.iterations), "--traces", "Full", "--max-slowdown",
                "0", "--canary", "Never", "-o", "json", timeout=PATIENCE_S,
            )  # fmt: skip
            if taken.returncode:
                print(f"{asked}: capture ended with {taken.returncode}: {taken.stderr[-600:]}", file=sys.stderr)
                continue
            uid = json.loads(taken.stdout)["uid"]
            yield asked, next(path.parent for path in local.state.rglob("report.json") if path.parent.name == uid)
    finally:
        (folder / "stop").touch()
        running.process.wait(PATIENCE_S)


def plan(given: argparse.Namespace) -> list[list[Asked]]:
    """The jobs, each with its captures."""
    source = random.Random(given.seed)
    jobs = []
    for case in given.cases.split(",") if given.cases else CASES:
        for ranks in map(int, given.ranks.split(",")):
            culprit = source.randrange(ranks)
            lengths = [int(length) for length in given.iterations.split(",")] * given.times
            jobs.append([Asked(case, ranks, length, culprit, at) for at, length in enumerate(lengths)])
    return jobs


def run_jobs(jobs: Sequence[Sequence[Asked]], keep: Path | None) -> Iterator[Answer]:
    with tempfile.TemporaryDirectory(prefix="fleetprof-planted-") as folder:
        local = make_local(Path(folder))
        try:
            local.up()
            for job in jobs:
                try:
                    for asked, capture in play(local, job):
                        if keep is not None:
                            keep_capture(asked, capture, keep)
                        yield judge(asked, json.loads((capture / "report.json").read_text()))
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    print(f"{job[0].case} with {job[0].ranks} ranks is left out: {error}", file=sys.stderr, flush=True)
        finally:
            local.close()


def keep_capture(asked: Asked, capture: Path, folder: Path) -> None:
    kept = folder / f"{_name(asked)}-{asked.iterations}-{asked.number}-{time.time_ns() // 10**9}"
    shutil.copytree(capture, kept)
    (kept / "planted.txt").write_text(json.dumps(asdict(asked)))
    shutil.copy(JOB, kept)


def judge_kept(folder: Path, cases: str) -> Iterator[Answer]:
    """The kept captures, analysed by the analyzer as it is now."""
    for written in sorted(folder.rglob("planted.txt")):
        asked = Asked(**json.loads(written.read_text()))
        if not cases or asked.case in cases.split(","):
            report = analyze_directory(written.parent)
            yield judge(asked, json.loads(msgspec.json.encode(report)), written.with_name(JOB.name))


def tell(answer: Answer) -> str:
    asked = answer.asked
    marks = "".join("·" if mark is None else "-+"[mark] for mark in (answer.rank, answer.cause, answer.line))
    return (
        f"{marks} {asked.case} {asked.ranks} ranks, {asked.iterations} iterations, rank {asked.culprit}: "
        f"{answer.verdict} {list(answer.named)} {list(answer.said[:2])} {100 * answer.gain:.0f} % {answer.place} "
        f"({answer.reason[:110]})"
    )


def table(answers: Sequence[Answer]) -> list[str]:
    """One line for each case, and the sums, for each length of the window."""
    lines = []
    for length in sorted({one.asked.iterations for one in answers}, reverse=True):
        of_length = [one for one in answers if one.asked.iterations == length]
        lines += [
            f"{length} iterations",
            f"{'case':<20}{'captures':>9}{'rank':>15}{'cause':>15}{'line':>15}{'undecided':>11}",
        ]
        for case in CASES:
            if of_case := [one for one in of_length if one.asked.case == case]:
                lines.append(_line(case, of_case))
        faults = [one for one in of_length if CASES[one.asked.case].causes]
        healthy = [one for one in of_length if not CASES[one.asked.case].causes]
        lines.append(_line("all faults", faults))
        alarms = sum(bool(one.named) or one.verdict in ALARMS for one in healthy)
        lines += [f"false alarms on healthy runs: {_share(alarms, len(healthy))}", ""]
    return lines


def _line(case: str, answers: Sequence[Answer]) -> str:
    hosts = [one for one in answers if CASES[one.asked.case].by_host]
    given = sum(one.undecided for one in answers)
    return (
        f"{case:<20}{len(answers):>9}{_share(sum(one.rank for one in answers), len(answers)):>15}"
        f"{_share(sum(one.cause for one in answers), len(answers)):>15}"
        f"{_share(sum(bool(one.line) for one in hosts), len(hosts)):>15}{given:>11}"
    )


def _share(count: int, of: int) -> str:
    return f"{count}/{of} {100 * count / of:.0f} %" if of else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=2, help="captures of each job and length")
    parser.add_argument("--cases", default="", help=f"of {', '.join(CASES)}")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--iterations", default="20,10")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the captures")
    parser.add_argument("--judge", type=Path, help="a folder of kept captures: no job is run")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # jobs and hub are stopped on the way out
    started = [
        f"python bench/faults/planted_faults.py {' '.join(sys.argv[1:])}",
        f"load average {os.getloadavg()[0]:.1f}",
        "",
    ]
    answers = []
    for answer in judge_kept(given.judge, given.cases) if given.judge else run_jobs(plan(given), given.keep):
        answers.append(answer)
        print(tell(answer), file=sys.stderr, flush=True)
    if given.output == "json":
        print(json.dumps([asdict(replace(one, reason="")) for one in answers]))
        return
    lines = [*started, *table(answers), *(tell(one) for one in answers if not (one.rank and one.cause))]
    print("\n".join(lines))
    if given.times >= _WHOLE and not given.cases and not given.judge:
        results = ROOT / "bench" / "results" / f"planted-faults-{time.strftime('%Y-%m-%d')}.txt"
        results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
