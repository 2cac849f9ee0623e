"""`make bench`: every figure that fleetprof claims, measured in one run beside its target or a named peer.

    python bench/run.py [--quick] [--only SECTION]...

Prints the table and writes bench/results/<date>.json with the machine and the versions; a section that was not run
keeps its figures of the same day. Nothing here is a test: a target that is missed is printed as missed, and the exit
code stays 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from capture import captures, fanout  # noqa: E402
from cost import idle_cost, sidecar_telemetry, telemetry_in_job, thread_samples  # noqa: E402
from figures import Figure  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402
from hub import events, neighbours, telemetry  # noqa: E402

SECTIONS = ["captures", "idle", "samples", "fanout", "hub", "telemetry"]


def _with_system(measure: Callable[[Local], list[Figure]]) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="fleetprof-bench-") as folder:
        local = make_local(Path(folder))
        try:
            local.up()
            return measure(local)
        finally:
            local.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few repetitions: does it run, not how fast")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="may be repeated")
    arguments = parser.parse_args()
    only = arguments.only or SECTIONS
    figures: list[Figure] = []
    if "idle" in only:
        figures += _with_system(lambda local: idle_cost.measure(local, quick=arguments.quick))
    if "samples" in only:
        figures += thread_samples.measure(quick=arguments.quick)
    if "captures" in only:
        figures += _with_system(lambda local: captures.measure(local, quick=arguments.quick))
    if "fanout" in only:
        figures += _with_system(fanout.measure)
    if "hub" in only:
        figures += events.measure(1000 if arguments.quick else events.RANKS) + neighbours.measure()
    if "telemetry" in only:
        figures += telemetry_in_job.measure() + _with_system(sidecar_telemetry.measure) + telemetry.measure()
    _print(figures)
    if not arguments.quick:
        _write(figures)


def _print(figures: list[Figure]) -> None:
    width = max(len(figure.name) for figure in figures)
    section = ""
    for figure in figures:
        if figure.section != section:
            section = figure.section
            print(f"\n{section}")
        verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
        target = f"   [{figure.target}] {verdict}" if figure.target else ""
        print(f"  {figure.name:<{width}}  {figure.value}{target}")


def _write(figures: list[Figure]) -> None:
    machine = {
        "cores": os.cpu_count(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("fleetprof", "torch", "grpcio")},
    }
    path = HERE / "results" / f"{time.strftime('%Y-%m-%d')}.json"
    path.parent.mkdir(exist_ok=True)
    measured = [figure.as_json() for figure in figures]
    sections = {figure["section"] for figure in measured}
    # What a run of the same day measured of the other sections stays.
    before = json.loads(path.read_text())["figures"] if path.exists() else []
    document = {"machine": machine, "figures": [f for f in before if f["section"] not in sections] + measured}
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"\nwritten to {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
