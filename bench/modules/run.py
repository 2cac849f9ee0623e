"""Operators' time on the right module: python bench/modules/run.py [--cases mlp,gan] [--json]

Each case of architectures.py runs a few iterations that Kineto records, the last one marked as the agent marks it.
The analyzer's assignment is compared with what the modules say of themselves (truth.py): of the marked iteration, and
of the measured ones before it, which it aligns with the marked one. Printed are the shares of operators' own time that
is right, wrong, and unassigned (of it: known to be in a module around it), of that which a module made; and
what a module's call costs more with marks while Kineto records (median of pairs, µs), where it can be told; and
floating-point operations by shapes, beside those of torch.utils.flop_counter in another iteration; bytes saved for
backward by modules, beside those that hooks see in another one, a loss that is no module and recomputation included.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from architectures import CASES, Case
from fleetprof_agent.modules.marks import ModuleMarks
from fleetprof_analyzer.rank.efficiency.operator_flops import count_operators
from fleetprof_analyzer.rank.modules.assignment import Assignment, assign
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.unmarked.alike import find_alike
from fleetprof_analyzer.rank.modules.unmarked.measured import assign_measured
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import NO_ROWS, Category, Trace
from fleetprof_api.samples import ModuleColumns
from packaged import find_packaged
from torch.utils.flop_counter import FlopCounterMode
from truth import ModuleTruth, judge

_WARM_UP: Final = 3
_MEASURED: Final = 4
_ITERATION: Final = "bench: an iteration"
_PAIRS: Final = 60
_DEEP: Final = 200


def measure(case: Case, *, count_flops: bool = True) -> dict[str, Any]:
    """Shares of the own time of operators that modules made, per cent, the largest mistakes, and FLOPs in two ways."""
    truth = ModuleTruth()
    for name, root in case.roots.items():
        truth.add(root, name)
    for _ in range(_WARM_UP):
        case.iterate(truth.tell)
    marks = ModuleMarks(torch)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as recorded:
        for _ in range(_MEASURED):
            with torch.profiler.record_function(_ITERATION):
                case.iterate(truth.tell)
        torch.manual_seed(7)
        marks.begin()
        case.iterate(truth.tell)
        is_whole = marks.is_on
        marks.end()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        with path.open("rb") as file:
            trace = read_trace(file, path.name, Problems())
    measured, marked = part_marked(trace)
    assert marked is not None
    found = assign(marked)
    verdict = judge(trace, found)
    columns = _read_columns(marks)
    parts = {**_share(verdict, ""), **_share(_judge_measured(measured, found, columns), "measured_")}
    made = verdict["right"] + verdict["wrong"] + verdict["unassigned"]
    worst = {what: round(100 * ns / made, 2) for what, ns in verdict.most_common() if ": " in what}
    counted = count_operators(marked.rows, trace.names, trace.inputs)
    flops = {"flops": int(np.maximum(counted.flops, 0).sum()), "counter": None}
    if count_flops:
        torch.manual_seed(7)  # layers that are left out by chance are the same ones
        with FlopCounterMode(display=False) as counter:
            case.iterate(truth.tell)
        flops["counter"] = counter.get_total_flops()
    saved = {"saved_bytes": sum(one or 0 for one in columns.saved_bytes), "hooked_bytes": _hook_saved(case, truth)}
    return {**parts, **flops, **saved, "whole": is_whole, "mistakes": dict(list(worst.items())[:5])}


def _share(verdict: Counter[str], prefix: str) -> dict[str, float]:
    """Per cent of the time that modules made."""
    made = (verdict["right"] + verdict["wrong"] + verdict["unassigned"]) or 1
    names = ("right", "wrong", "unassigned", "around")
    return {prefix + name: round(100 * verdict[name] / made, 2) for name in names}


def _judge_measured(measured: Trace, found: Assignment, columns: ModuleColumns) -> Counter[str]:
    """The verdict on the iterations before the marked one."""
    rows = measured.rows
    is_one = (rows.category == Category.ANNOTATION) & where_name(rows, measured.names, lambda name: name == _ITERATION)
    bounds = sorted(zip(rows.start_ns[is_one].tolist(), rows.end_ns[is_one].tolist(), strict=True))
    nothing = NO_ROWS.correlation
    aligned = assign_measured(rows, measured.names, bounds, found, (nothing, nothing), find_alike(columns))
    return judge(
        measured,
        Assignment(
            aligned.rows, found.paths, aligned.path, aligned.phase, aligned.own_ns,
            np.zeros(len(aligned.rows), np.bool_), [],
        ),
        aligned.is_inside,
    )  # fmt: skip


def _read_columns(marks: ModuleMarks) -> ModuleColumns:
    """The agent's word on modules."""
    columns = ModuleColumns()

    def send(_kind: str, **fields: Any) -> bool:
        for name in ModuleColumns.__struct_fields__:
            getattr(columns, name).extend(fields[name])
        return True

    marks.weigh()
    marks.table.flush(send)
    return columns


def _hook_saved(case: Case, truth: ModuleTruth) -> int:
    """Bytes of all storages that one iteration saves, by hooks, but parameters and buffers; losses included."""
    held = {
        tensor.untyped_storage().data_ptr()
        for root in case.roots.values()
        for tensor in (*root.parameters(), *root.buffers())
    }
    storages: dict[int, Any] = {}  # kept alive: another one would have its address

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held:
            storages[storage.data_ptr()] = storage
        return tensor

    torch.manual_seed(7)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        case.iterate(truth.tell)
    return sum(storage.nbytes() for storage in storages.values())


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
    cases = {**CASES, **find_packaged()}
    parser.add_argument("--cases", default=",".join(cases))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    found = {name: measure(cases[name](), count_flops=name != "compiled") for name in arguments.cases.split(",")}
    cost = measure_cost()
    if arguments.json:
        print(json.dumps({"cases": found, "cost_us": cost}))
    else:
        print(
            f"{'':25} {'marked iteration':^27} {'measured iterations':^37}\n{'architecture':25} "
            f"{'right':>7} {'wrong':>7} {'unassigned':>11} {'right':>7} {'wrong':>7} {'unassigned':>11} {'around':>8} "
            f"{'FLOPs by shapes':>16} {'counter':>16}"
        )
        for name, one in found.items():
            note = "" if one["whole"] else "  compiled meanwhile"
            print(
                f"{name:25} {one['right']:6.2f} % {one['wrong']:5.2f} % {one['unassigned']:9.2f} % "
                f"{one['measured_right']:6.2f} % {one['measured_wrong']:5.2f} % {one['measured_unassigned']:9.2f} % "
                f"{one['measured_around']:6.2f} % "
                f"{one['flops']:16,} {one['counter'] or 0:16,} "
                f"{one['saved_bytes']:14,} {one['hooked_bytes']:14,}{note}"
            )
            for what, share in one["mistakes"].items():
                print(f"    {share:5.2f} %  {what}")
        print(f"a module's call with marks, while Kineto records: {cost:.2f} µs more")
    sys.stdout.flush()
    os._exit(0)  # a process group would wait for its peers


if __name__ == "__main__":
    main()
