"""`make bench-real`: real programs of well-known packages, captured as a user does, stages beside hidden annotations.

    python bench/real/run.py [--only NAME]... [--times N] [-o text|json] [--keep FOLDER | --again FOLDER]

Each program (programs/, unmodified) runs in an environment with its package (environment.py), is captured from the
moment it is launched and again while it trains (capture.py), and its stages are compared with time stamps that a patch
of PyTorch wrote beside it (truth/). The table goes to stdout, progress to stderr, the record of a whole run to
bench/results/real-DATE.json. Nothing here is a test: what misses its target is printed, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from capture import Captured, capture_twice  # noqa: E402
from catalog import CATALOG, Program  # noqa: E402
from environment import NEWEST, VERSIONS, WITH_TORCHREC, make_environment  # noqa: E402
from table import as_text, judge  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=[p.name for p in CATALOG], help="may be repeated")
    parser.add_argument("--times", type=int, default=1, help="how often each program is run")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--keep", type=Path, help="folder in which traces, reports and time stamps are kept")
    parser.add_argument("--again", type=Path, help="judge what --keep has kept anew; nothing is run")
    given = parser.parse_args()
    chosen = [program for program in CATALOG if program.name in (given.only or [p.name for p in CATALOG])]
    rows = []
    for program in chosen:
        for number in range(given.times):
            if given.again:
                rows += _judge(program, number, given.again / f"{program.name}-{number}")
            else:
                rows += _measure(program, make_environment(program.environment), number, given.keep)
    record = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()},
        "versions": VERSIONS[NEWEST]
        | {f"{package} {WITH_TORCHREC}": version for package, version in VERSIONS[WITH_TORCHREC].items()},
        "rows": rows,
    }
    if not given.only:
        path = ROOT / "bench" / "results" / f"real-{record['date']}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"written to {path.relative_to(ROOT)}", file=sys.stderr)
    print(json.dumps(record, indent=1) if given.output == "json" else as_text(rows))


def _measure(program: Program, commands: Path, number: int, keep: Path | None) -> list[dict[str, object]]:
    """The rows of one run of a program: one for each capture."""
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {program.name}: {words}", file=sys.stderr, flush=True)

    # In memory where that is possible: a stamp must not wait for a disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="fleetprof-real-") as name,
        tempfile.TemporaryDirectory(prefix="fleetprof-stamps-", dir=memory) as stamps,
    ):
        folder = Path(name)
        found = capture_twice(program, commands, folder, Path(stamps), say)
        kept = (keep or folder / "kept") / f"{program.name}-{number}"
        _keep(folder, Path(stamps), found, kept)
        rows = _judge(program, number, kept)
    for row in rows:
        if "right" in row:
            say(f"{row['phase']}: {100 * float(str(row['right'])):.1f} % right")
    return rows


def _keep(folder: Path, stamps: Path, found: list[Captured], kept: Path) -> None:
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    shutil.copytree(stamps, kept / "stamps", copy_function=_copy_stamps)
    for log in (*folder.glob("output"), *folder.glob("*.log")):
        shutil.copy(log, kept)
    for one in found:
        if one.folder is not None:
            shutil.copytree(one.folder, kept / one.phase)
    (kept / "captures.json").write_text(json.dumps([asdict(one) | {"folder": None} for one in found]))


def _judge(program: Program, number: int, kept: Path) -> list[dict[str, object]]:
    """The rows of one run that was kept."""
    rows = []
    for line in json.loads((kept / "captures.json").read_text()) if kept.exists() else []:
        one = Captured(**line)
        one.folder = kept / one.phase if (kept / one.phase).exists() else None
        rows.append(judge(program, number, one, kept / "stamps"))
    return rows


def _copy_stamps(source: str, target: str) -> None:
    """A copy that is no longer than what was written."""
    written = Path(source).read_bytes().rstrip(b"\0")
    Path(target).write_bytes(written + b"\0" * (-len(written) % 24))


if __name__ == "__main__":
    main()
