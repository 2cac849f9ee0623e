"""Operators' time on the right module: python bench/modules/run.py [--cases mlp,gan] [--json]

Each case of architectures.py runs a few iterations, the last one marked as the agent marks it and recorded by Kineto.
The analyzer's assignment is compared with what the modules say of themselves (truth.py). Printed are the shares of
operators' own time that is right, wrong, and unassigned although a module made it, of that which a module made; and
what a module's call costs more with marks while Kineto records (median of pairs, µs), where it can be told.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch
from architectures import CASES, Case
from fleetprof_agent.modules.marks import ModuleMarks
from fleetprof_analyzer.rank.modules.assignment import assign
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from truth import ModuleTruth, judge

_WARM_UP: Final = 3
_PAIRS: Final = 60
_DEEP: Final = 200


def measure(case: Case) -> dict[str, Any]:
    """Shares of the own time of operators that modules made, per cent, and the largest mistakes."""
    truth = ModuleTruth()
    for name, root in case.roots.items():
        truth.add(root, name)
    for _ in range(_WARM_UP):
        case.iterate(truth.tell)
    marks = ModuleMarks(torch)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        marks.begin()
        case.iterate(truth.tell)
        is_whole = marks.is_on
        marks.end()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        with path.open("rb") as file:
            trace = read_trace(file, path.name, Problems())
    _, marked = part_marked(trace)
    assert marked is not None
    verdict = judge(trace, assign(marked))
    made = verdict["right"] + verdict["wrong"] + verdict["unassigned"]
    parts = {name: round(100 * verdict[name] / made, 2) for name in ("right", "wrong", "unassigned")}
    worst = {what: round(100 * ns / made, 2) for what, ns in verdict.most_common() if ": " in what}
    return {**parts, "whole": is_whole, "mistakes": dict(list(worst.items())[:5])}


def measure_cost() -> float:
    """The added cost of a call of a module with marks, µs; Kineto records, and calls with and without take turns."""
    layers = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(_DEEP)))
    batch = torch.zeros(1)
    more = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for _ in range(_PAIRS):
            bare = _time(layers, batch)
            marks = ModuleMarks(torch)
            marks.begin()
            layers(batch)  # names are found, once
            more.append((_time(layers, batch) - bare) / (_DEEP + 1))
            marks.end()
    return statistics.median(more) / 1000


def _time(layers: torch.nn.Module, batch: torch.Tensor) -> int:
    began = time.perf_counter_ns()
    layers(batch)
    return time.perf_counter_ns() - began


def main() -> None:
    """Runs the cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    found = {name: measure(CASES[name]()) for name in arguments.cases.split(",")}
    cost = measure_cost()
    if arguments.json:
        print(json.dumps({"cases": found, "cost_us": cost}))
    else:
        print(f"{'architecture':18} {'right':>7} {'wrong':>7} {'unassigned':>11}")
        for name, one in found.items():
            note = "" if one["whole"] else "  compiled meanwhile"
            print(f"{name:18} {one['right']:6.2f} % {one['wrong']:5.2f} % {one['unassigned']:9.2f} %{note}")
            for what, share in one["mistakes"].items():
                print(f"    {share:5.2f} %  {what}")
        print(f"a module's call with marks, while Kineto records: {cost:.2f} µs more")
    sys.stdout.flush()
    os._exit(0)  # a process group would wait for its peers


if __name__ == "__main__":
    main()
