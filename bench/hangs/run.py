"""Starts a job for each kind of hang, asks `fleetprof stacks`, and counts what is named right.

    python bench/hangs/run.py [--only WAY]... [--ranks N]

A row is right in its rank where the verdict names the planted one alone, in its cause where it names one of those of
`program.HANGS`, in its line where it names the marked one. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bench" / "real"), str(ROOT / "tests")]

from capture import stop_programs  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402
from program import CULPRIT, HANGS  # noqa: E402

PROGRAM = HERE / "program.py"
BLAMELESS = ("two_groups", "slow_iteration")
"""Ways for which no single rank is to blame; the last one is no hang at all."""
STANDS_S = 12.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=sorted(HANGS), help="may be repeated")
    parser.add_argument("--ranks", type=int, default=2)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.ranks} ranks", flush=True)
    print("hang                 rank   cause  line   answer   sentence")
    for way in given.only or HANGS:
        print(_row(way, given.ranks), flush=True)


def _row(way: str, ranks: int) -> str:
    _, causes, has_line = HANGS[way]
    with tempfile.TemporaryDirectory(prefix="fleetprof-hangs-") as name:
        local = make_local(Path(name))
        try:
            local.up()
            local.connection.close()
            torchrun = str(ROOT / ".venv" / "bin" / "torchrun")
            words = [torchrun, "--standalone", "--nproc-per-node", str(ranks), str(PROGRAM), way]
            local.run_command("hang", *words)
            verdict, took_s = _ask(local, stands_s=STANDS_S if "moves" not in causes else 3.0)
        finally:
            stop_programs(local)
            local.close()
    rank = "-" if way in BLAMELESS else _say(verdict["ranks"] == [CULPRIT])
    line = "-"
    if has_line:
        marked = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if f"LINE:{way}" in text)
        place = verdict["place"] or {"line": 0, "file": ""}
        line = _say(abs(place["line"] - marked) <= 1 and place["file"].endswith("program.py"))
    cause = _say(verdict["cause"] in causes)
    return f"{way:<20} {rank:<6} {cause:<6} {line:<6} {took_s:>5.1f} s  {verdict['cause']}: {verdict['sentence']}"


def _ask(local: Local, stands_s: float) -> tuple[dict[str, object], float]:
    """The first verdict on a job that stands, and how long it took."""
    end = time.monotonic() + 120
    while True:
        began = time.monotonic()
        answer = local.command("stacks", "-o", "json")
        took_s = time.monotonic() - began
        documents = list(json.loads(answer.stdout).values()) if answer.returncode == 0 else []
        if documents and documents[0]["verdict"]["stands_ns"] >= stands_s * 1e9:
            return documents[0]["verdict"], took_s
        if time.monotonic() > end:
            verdict = documents[0]["verdict"] if documents else {"ranks": [], "cause": answer.stderr, "sentence": ""}
            return {"place": None} | verdict, took_s
        time.sleep(1)


def _say(is_right: bool) -> str:
    return "right" if is_right else "WRONG"


if __name__ == "__main__":
    main()
