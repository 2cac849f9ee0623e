"""`make bench-analyzer`: the analyzer beside Meta's HTA on the same traces in the same run, and beside the floor.

    python bench/analyzer.py [--events N] [--ranks N] [--repeat N] [--folder DIR]

Sets, made anew from real traces (../shared/traces, or planted ones where that folder is not there): `one`, one rank of
--events events; `job`, --ranks ranks; `stacks`, one rank with Python stacks, on one line. Every program runs by itself,
at low priority, one after the other; CPU seconds and the peak of its memory are the kernel's (RUSAGE_CHILDREN), start
of the interpreter and imports included. The floor is gunzip and a scan over the bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
SHARED = ROOT.parent / "shared" / "traces"
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "harness")]

from figures import Figure  # noqa: E402

OURS = (
    "import sys, json; from fleetprof_analyzer.analysis import analyze_directory as a;"
    "from fleetprof_api.report import write_report as w; sys.stdout.buffer.write(w(a(sys.argv[1])))"
)
FLOOR = (
    "import sys, glob; from isal import igzip; import msgspec\n"
    "for f in glob.glob(sys.argv[1] + '/*.gz'):\n"
    "    text = igzip.open(f).read(); text.count(b'\"ph\"')\n"
)


@dataclass(frozen=True)
class Run:
    """What one program took."""

    cpu_s: float
    wall_s: float
    peak_mib: int
    output: bytes


def measure(command: list[str]) -> Run:
    """Runs a command at low priority; its CPU time and peak memory as the kernel counts them, children included."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as noise:
        began = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-c", _WATCHED, *command], stdout=output, stderr=noise, preexec_fn=lambda: os.nice(10)
        )
        code = child.wait()
        wall = time.perf_counter() - began
        output.seek(0)
        text, _, usage = output.read().rpartition(b"\n")
        if code != 0:
            noise.seek(0)
            raise SystemExit(f"{command[:3]} failed:\n{noise.read()[-2000:].decode(errors='replace')}")
    cpu_s, peak_kib = json.loads(usage)
    return Run(cpu_s, wall, peak_kib // 1024, text)


# A process in between: RUSAGE_CHILDREN of this one would hold the largest of all runs before.
_WATCHED = (
    "import resource, subprocess, sys, json\n"
    "code = subprocess.call(sys.argv[1:])\n"
    "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "sys.stdout.buffer.write(b'\\n' + json.dumps([u.ru_utime + u.ru_stime, u.ru_maxrss]).encode())\n"
    "sys.exit(code)\n"
)


# ---------------------------------------------------------------- the sets


def repeat_trace(document: dict[str, Any], events: int, rank: int, ranks: int) -> Iterator[str]:
    """The text of a trace that repeats this one's events, one after the other in time, up to about `events`."""
    source = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    span = max(float(e["ts"]) + float(e["dur"]) for e in source) - min(float(e["ts"]) for e in source)
    span_us = int(span) + 1000
    numbers = [e["args"][key] for e in source for key in ("correlation", "External id") if key in e.get("args", {})]
    step = max((number for number in numbers if isinstance(number, int)), default=0) + 1
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": ranks}
    yield json.dumps(head, default=str)[:-1] + ', "traceEvents": [\n'
    for turn in range(max(1, round(events / len(source)))):
        for number, event in enumerate(source):
            args = dict(event.get("args", {}))
            for key in ("correlation", "External id"):
                if isinstance(args.get(key), int):
                    args[key] += turn * step
            name = event["name"]
            if name.startswith("ProfilerStep#"):
                name = f"ProfilerStep#{int(name[13:]) + 100 * turn}"
            moved = {**event, "name": name, "ts": Moved(f"{Decimal(event['ts']) + turn * span_us}"), "args": args}
            yield ("" if turn == number == 0 else ",\n") + _dump(moved)
    yield "\n]}"


class Moved(str):
    """A number that is written with these digits."""


def _dump(event: dict[str, Any]) -> str:
    start = event.pop("ts")
    return json.dumps(event, default=float)[:-1] + f', "ts": {start}}}'


def make_sets(folder: Path, events: int, ranks: int, only: Sequence[str]) -> dict[str, Path]:
    """Writes the sets; name -> folder."""
    document, stacks = _sources()
    made = {}
    for name, source, many, each in (
        ("one", document, 1, events),
        ("job", document, ranks, max(10_000, events // ranks)),
        ("stacks", stacks, 1, events),
    ):
        if name not in only:
            continue
        made[name] = folder / name
        made[name].mkdir(parents=True)
        for rank in range(many):
            with gzip.open(made[name] / f"rank{rank}.json.gz", "wt", compresslevel=1) as file:
                for piece in repeat_trace(source, each, rank, many):
                    file.write(piece.replace("\n", "") if name == "stacks" else piece)
    return made


def _sources() -> tuple[dict[str, Any], dict[str, Any]]:
    def load(path: Path) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
        return document

    if SHARED.is_dir():
        return load(SHARED / "nccl_a100/nccl_data.json.gz"), load(SHARED / "ddp4_gloo_cpu/ddp4_full_rank0.json.gz")
    from planted_traces import plant

    document = json.loads(plant(0, iterations=40).text(), parse_float=Decimal)
    return document, document


# ---------------------------------------------------------------- the comparison


def compare(name: str, folder: Path, peer: str, repeat: int) -> list[Figure]:
    """Our run, the peer's and the floor on one set."""
    raw = sum(_length(file) for file in folder.glob("*.gz"))
    ours = min((measure([sys.executable, "-c", OURS, str(folder)]) for _ in range(repeat)), key=lambda run: run.cpu_s)
    floor = measure([sys.executable, "-c", FLOOR, str(folder)])
    report = json.loads(ours.output)
    events = sum(rank["event_count"] for rank in report["ranks"])
    what = f"{name}: {len(report['ranks'])} ranks, {events:,} events, {raw / 1e6:,.0f} MB"
    figures = [
        Figure("analyzer", f"{what}: CPU", f"{ours.cpu_s:.2f} s, wall {ours.wall_s:.1f} s, peak {ours.peak_mib} MiB"),
        Figure("analyzer", f"{name}: beside the floor (gunzip + scan)", f"{ours.cpu_s / floor.cpu_s:.1f} × CPU"),
    ]
    if not peer or not any(rank["kind"] == "gpu" for rank in report["ranks"]):
        return [*figures, Figure("analyzer", f"{name}: beside HTA", "not run: HTA reads GPU traces only")]
    theirs = measure([peer, str(HERE / "analyzer_peer.py"), str(folder)])
    answer = json.loads(theirs.output)
    cpu, memory = theirs.cpu_s / ours.cpu_s, theirs.peak_mib / ours.peak_mib
    return [
        *figures,
        Figure("analyzer", f"{name}: {answer['peer']}", f"{theirs.cpu_s:.2f} s, wall {theirs.wall_s:.1f} s, "
               f"peak {theirs.peak_mib} MiB"),
        Figure("analyzer", f"{name}: less CPU than HTA", f"{cpu:.1f} ×", "≥ 15 ×", cpu >= 15),
        Figure("analyzer", f"{name}: less memory than HTA", f"{memory:.1f} ×", "≥ 10 ×", memory >= 10),
    ]  # fmt: skip


def _length(file: Path) -> int:
    with gzip.open(file) as opened:
        return sum(len(block) for block in iter(lambda: opened.read(1 << 20), b""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=1_500_000, help="of each set")
    parser.add_argument("--ranks", type=int, default=8, help="of the job")
    parser.add_argument("--repeat", type=int, default=2, help="runs of ours; the best counts")
    parser.add_argument("--only", action="append", choices=["one", "job", "stacks"], help="may be repeated")
    parser.add_argument("--without-hta", action="store_true", help="only ours and the floor")
    arguments = parser.parse_args()
    peer = ""
    if not arguments.without_hta:
        peer = subprocess.run([ROOT / ".ci/hta"], capture_output=True, text=True, check=True).stdout.strip()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="fleetprof-bench-") as folder:
        wanted = arguments.only or ["one", "job", "stacks"]
        for name, place in make_sets(Path(folder), arguments.events, arguments.ranks, wanted).items():
            figures += compare(name, place, peer, arguments.repeat)
    for figure in figures:
        verdict = {True: "  met", False: "  MISSED", None: ""}[figure.met]
        print(f"{figure.name:<60} {figure.value:<44} {figure.target}{verdict}")
    results = HERE / "results" / f"analyzer-{time.strftime('%Y-%m-%d')}.json"
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    versions = {name: version(name) for name in ("numpy", "msgspec", "isal")}
    document = {"machine": machine, "versions": versions, "figures": [figure.as_json() for figure in figures]}
    results.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
