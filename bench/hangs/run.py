"""Starts a job for each kind of hang, asks `fleetprof stacks`, and counts what is named right.

    python bench/hangs/run.py [--only WAY]... [--ranks N] [--python PYTHON]

A row is right in its rank where the verdict names the planted one alone, in its cause where it names one of those of
`ways.WAYS`, in its line where it names the marked one. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bench" / "real"), str(ROOT / "tests")]

from capture import stop_programs  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402
from ways import WAYS, PlantedHang  # noqa: E402

STANDS_S = 12.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=sorted(WAYS), help="may be repeated")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--python", default=sys.executable, help="with another PyTorch")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.ranks} ranks; {given.python}", flush=True)
    print("hang                 rank   cause  line   answer   sentence")
    hits: Counter[tuple[str, str]] = Counter()
    for way in given.only or WAYS:
        row, judged = _row(way, given)
        hits.update(judged.items())
        print(row, flush=True)
    for what in ("rank", "cause", "line"):
        right = hits[what, "right"]
        print(f"{what}: {right} of {right + hits[what, 'WRONG']} right")


def _row(way: str, given: argparse.Namespace) -> tuple[str, dict[str, str]]:
    hang = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="fleetprof-hangs-") as name:
        local = make_local(Path(name))
        try:
            local.up()
            local.connection.close()
            words = [given.python, str(HERE / "launch.py"), str(given.ranks), str(HERE / "program.py"), way]
            job = local.run_command("hang", *words)
            verdict, took_s = _ask(local, stands_s=STANDS_S if "moves" not in hang.causes else 0.05)
            if not verdict["ranks"] and hang.is_blamed:
                print(job.output.read_text(errors="replace")[-600:], file=sys.stderr)
        finally:
            stop_programs(local)
            local.close()
    judged = _judge(way, hang, verdict)
    shown = "".join(f"{judged.get(what, '-'):<7}" for what in ("rank", "cause", "line"))
    return f"{way:<20} {shown}{took_s:>5.1f} s  {verdict['cause']}: {verdict['sentence']}", judged


def _judge(way: str, hang: PlantedHang, verdict: dict[str, Any]) -> dict[str, str]:
    """right or WRONG for each thing that can be."""
    judged = {"cause": _say(verdict["cause"] in hang.causes)}
    if hang.is_blamed:
        judged["rank"] = _say(verdict["ranks"] == [hang.culprit])
    if hang.has_line:
        place = verdict["place"] or {"line": 0, "file": ""}
        judged["line"] = _say((Path(place["file"]).name, place["line"]) in _find_marks(way))
    return judged


def _find_marks(way: str) -> set[tuple[str, int]]:
    """The lines that are marked for a way: file, line."""
    return {
        (path.name, number)
        for path in HERE.glob("*.py")
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if way in text.partition("# LINE:")[2].split()
    }


def _ask(local: Local, stands_s: float) -> tuple[dict[str, Any], float]:
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
