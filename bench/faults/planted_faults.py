"""Right rank, right cause, right line, no false alarm: real jobs with a planted fault, captured as a user does it.

    python bench/faults/planted_faults.py [--times N] [--cases A,B] [--ranks 2,4] [--iterations 20,10] [--seed S]
        [--keep FOLDER] [-o json]
    python bench/faults/planted_faults.py --judge FOLDER

Each case is one job (planted_job.py under torchrun, gloo), captured N times for each length of the window through
`fleetprof up`, `run` and `capture`; the seed draws the rank that is at fault. The verdict is read from report.json.
--keep leaves the captures in FOLDER, and --judge FOLDER analyses them once more, without any job: for changes of the
analyzer. The whole table goes to bench/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import msgspec  # noqa: E402
from faults.planted_table import table, tell  # noqa: E402
from faults.planted_truth import CASES, JOB, Trial, TrialResult, judge  # noqa: E402
from fleetprof_analyzer.capture.folder import analyze_directory  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

PATIENCE_S = 300.0
_WHOLE = 5  # captures of each kind; a run of so many of all cases is kept in bench/results


def _environment(local: Local, trial: Trial) -> dict[str, str]:
    folder = local.folder / f"{_name(trial)}-files"
    folder.mkdir()
    return {"PLANT": trial.case, "PLANT_RANK": str(trial.culprit), "PLANT_FOLDER": str(folder)}


def _name(trial: Trial) -> str:
    return f"{trial.case.replace('_', '-')}-{trial.ranks}"


def play(local: Local, job: Sequence[Trial]) -> Iterator[tuple[Trial, Path, Path]]:
    """One job and its captures; the folder of each, and that of the job's files."""
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
        for trial in job:
            taken = local.command(
                "capture", running.name, "--iterations", str(trial.iterations), "--traces", "Full", "--max-slowdown",
                "0", "--canary", "Never", "-o", "json", timeout=PATIENCE_S,
            )  # fmt: skip
            if taken.returncode:
                print(f"{trial}: capture ended with {taken.returncode}: {taken.stderr[-600:]}", file=sys.stderr)
                continue
            uid = json.loads(taken.stdout)["uid"]
            reports = local.state.rglob("report.json")
            measured = replace(trial, load=round(os.getloadavg()[0], 1))
            yield measured, next(path.parent for path in reports if path.parent.name == uid), folder
    finally:
        (folder / "stop").touch()
        running.process.wait(PATIENCE_S)


def plan(given: argparse.Namespace) -> list[list[Trial]]:
    """The jobs, each with its captures."""
    source = random.Random(given.seed)
    jobs = []
    for case in given.cases.split(",") if given.cases else CASES:
        for ranks in map(int, given.ranks.split(",")):
            culprit = source.randrange(ranks)
            lengths = [int(length) for length in given.iterations.split(",")] * given.times
            jobs.append([Trial(case, ranks, length, culprit, at) for at, length in enumerate(lengths)])
    return jobs


def run_jobs(jobs: Sequence[Sequence[Trial]], keep: Path | None) -> Iterator[TrialResult]:
    with tempfile.TemporaryDirectory(prefix="fleetprof-planted-") as folder:
        local = make_local(Path(folder))
        try:
            local.up()
            for job in jobs:
                try:
                    for trial, capture, files in play(local, job):
                        if keep is not None:
                            keep_capture(trial, capture, files, keep)
                        yield judge(trial, json.loads((capture / "report.json").read_text()), files)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    print(f"{job[0].case} with {job[0].ranks} ranks is left out: {error}", file=sys.stderr, flush=True)
        finally:
            local.close()


def keep_capture(trial: Trial, capture: Path, files: Path, folder: Path) -> None:
    kept = folder / f"{_name(trial)}-{trial.iterations}-{trial.number}-{time.time_ns() // 10**9}"
    shutil.copytree(capture, kept)
    (kept / "planted.txt").write_text(json.dumps(asdict(trial)))
    for path in (JOB, *files.glob("queue-*")):
        shutil.copy(path, kept)


def judge_kept(folder: Path, cases: str) -> Iterator[TrialResult]:
    """The kept captures, analysed by the analyzer as it is now."""
    for written in sorted(folder.rglob("planted.txt")):
        trial = Trial(**json.loads(written.read_text()))
        if not cases or trial.case in cases.split(","):
            report = analyze_directory(written.parent)
            kept = written.parent
            yield judge(trial, json.loads(msgspec.json.encode(report)), kept, kept / JOB.name)


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
