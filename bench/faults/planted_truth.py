"""Planted truth, and the check that a report says so: the rank, the cause, the line of code.

Other programs may keep a rank from the cores where none is at fault, and a report that says so is right. The job
itself tells whether they did, by the kernel's count of its time in the run queue, which nothing of ours reads for it.

A line is right where the report's place lies in planted_job.py on a line that is marked for the fault, or in the
function that holds one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from faults import verdicts
from fleetprof_api.report.stragglers import Stragglers

JOB = Path(__file__).with_name("planted_job.py")


@dataclass(frozen=True)
class ExpectedVerdict:
    """The right report of a fault: the verdict, and one of the causes; `by_host` where a line is asked for."""

    causes: tuple[str, ...]
    verdict: str = "straggler"
    by_host: bool = True


CASES = {
    "loader": ExpectedVerdict(("data_loading",)),
    "disk": ExpectedVerdict(("data_loading",)),
    "generator": ExpectedVerdict(("data_loading",)),
    "busy_core": ExpectedVerdict(("cpu_contention",), by_host=False),
    "contention": ExpectedVerdict(("cpu_contention",), by_host=False),
    "collect": ExpectedVerdict(("garbage_collection",)),
    "item": ExpectedVerdict(("host",)),
    "hash": ExpectedVerdict(("host",)),
    "python": ExpectedVerdict(("host",)),
    "longer": ExpectedVerdict(("unequal_work",), by_host=False),
    "backward_hook": ExpectedVerdict(("host",)),
    "checkpoint": ExpectedVerdict(("host",)),
    "rotating": ExpectedVerdict(("host",), verdict="moving_imbalance"),
    "slow_everywhere": ExpectedVerdict(("data_loading",), verdict="nobody"),
    "none": ExpectedVerdict((), verdict="nobody", by_host=False),
    "generator_none": ExpectedVerdict((), verdict="nobody", by_host=False),
    "recurrent_none": ExpectedVerdict((), verdict="nobody", by_host=False),
    "convolutions_none": ExpectedVerdict((), verdict="nobody", by_host=False),
}


@dataclass(frozen=True)
class Trial:
    """One capture of one job; `load`: the machine's load average when it ended, 0 where that was not written down."""

    case: str
    ranks: int
    iterations: int
    culprit: int
    number: int
    load: float = 0.0


@dataclass(frozen=True)
class TrialResult:
    """The report's words on it; `line` is None where no place is given or asked for."""

    trial: Trial
    verdict: str
    named: tuple[int, ...]
    causes: tuple[str, ...]
    place: str
    rank: bool
    cause: bool
    line: bool | None
    undecided: bool
    reason: str
    gain: float
    is_crowded: bool  # where nobody is at fault: the rank that is named waited for a core, and the report says so


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


def read_queued_ns(folder: Path, rank: int, start_unix_ns: int, end_unix_ns: int) -> int:
    """The time that a rank waited for a core between two times, by the counter that it wrote; 0 where it did not."""
    written = folder / f"queue-{rank}"
    rows = [tuple(map(int, line.split())) for line in written.read_text().splitlines()] if written.exists() else []
    counted = [count for at_unix_ns, count in rows if start_unix_ns <= at_unix_ns <= end_unix_ns]
    return counted[-1] - counted[0] if counted else 0


def _is_crowded(report: dict[str, Any], folder: Path) -> bool:
    """Tells if the rank that is named for want of a core lost half of its lateness there, beyond what others did."""
    named = report["stragglers"]["ranks"][0]
    queued = {}
    for rank in report["ranks"]:
        whole = [one for one in rank["iterations"] if one["complete"]]
        end_unix_ns = whole[-1]["start_ns"] + whole[-1]["duration_ns"]
        queued[rank["rank"]] = read_queued_ns(folder, rank["rank"], whole[0]["start_ns"], end_unix_ns) / len(whole)
    usual = median(value for rank, value in queued.items() if rank != named["rank"])
    return named["cause"] == "cpu_contention" and 2 * (queued[named["rank"]] - usual) >= named["lateness_ns"]


def judge(trial: Trial, report: dict[str, Any], folder: Path, job: Path = JOB) -> TrialResult:
    """The report against the truth; `folder`: the job's files, `job`: the program as it ran."""
    expected = CASES[trial.case]
    is_late = expected.verdict == "straggler"
    found = msgspec.convert(report.get("stragglers") or {}, Stragglers)
    judged = verdicts.judge(found, verdicts.Truth(expected.verdict, (trial.culprit,) * is_late, expected.causes))
    first = found.ranks[0] if found.ranks else None
    causes: list[str] = [first.cause] if first is not None else []
    places = [(one.place.file, one.place.line, one.place.function) for one in found.ranks[:1] if one.place is not None]
    if not is_late:
        # Nobody is to be named; what it is stands with the verdict and in the findings.
        causes = [*filter(None, [found.cause]), *(finding["kind"] for finding in report["findings"])]
        of_findings = [one["place"] for one in report["findings"] if one.get("place")]
        places = [(one["file"], one["line"], one["function"]) for one in of_findings]
    crowded = not is_late and first is not None and _is_crowded(report, folder)
    # Of a fault that all ranks have, the report still has to say what it is.
    rank = judged.outcome == "right" or (crowded and bool(expected.causes))
    file, number, function = places[0] if places else ("", 0, "")
    return TrialResult(
        trial=trial,
        verdict=found.verdict,
        named=tuple(one.rank for one in found.ranks),
        causes=tuple(causes),
        place=f"{file.rpartition('/')[2]}:{number} {function}" if places else "",
        rank=rank,
        cause=rank and (not expected.causes or bool(set(expected.causes) & set(causes))),
        line=is_right_line(job, trial.case, file, number) if expected.by_host and places else None,
        undecided=judged.outcome == "open",
        reason=found.reason,
        gain=found.gain,
        is_crowded=crowded,
    )
