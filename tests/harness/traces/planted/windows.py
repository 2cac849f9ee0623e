"""A rank's steps with their truth, and what recorders lose or add: pauses, rows of other times, work, fitting clocks.

Each step takes 20 ms: the device computes 12, communicates 2 with nothing beside it, and is idle for 6. Times in µs.
"""

import io
import json
from collections.abc import Sequence
from typing import Any

from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture.folder import summarise_file
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import merge
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report import Report
from fleetprof_api.samples import RankSamples

STEP, MAIN, AUTOGRAD = 20_000, 10, 11
BEGIN = 5_000_000
Events = list[dict[str, Any]]


def row(name: str, category: str, start: float, length: float, thread: Any = MAIN, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": length, "args": args}


def kernel(name: str, start: float, length: float, correlation: int, stream: int = 7) -> dict[str, Any]:
    args = {"device": 0, "stream": stream, "correlation": correlation}
    return row(name, "kernel", start, length, stream, **args) | {"pid": 0}


def launch(start: float, correlation: int, thread: int = MAIN, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return row(name, "cuda_runtime", start, 20, thread, correlation=correlation)


def step(number: int, *, begin: float = BEGIN, profiler: bool = True) -> Events:
    """Step `number` at its place: loading 1.5 ms, forward, backward on autograd's thread, all-reduce, optimizer.

    The device is idle for 2 ms until forward's kernel, and for 4 ms after the all-reduce, until the optimizer's.
    """
    at, first = begin + STEP * number, 1_000 + 10 * number
    events = [
        row("enumerate(DataLoader)#_Iter.__next__", "user_annotation", at, 1_500),
        row("aten::linear", "cpu_op", at + 1_900, 100, **{"Sequence number": 3 * number}),
        launch(at + 1_950, first),
        kernel("gemm_forward", at + 2_000, 4_000, first),
        row("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", at + 2_500, 200, AUTOGRAD,
            **{"Sequence number": 3 * number}),
        launch(at + 2_550, first + 1, AUTOGRAD),
        kernel("gemm_backward", at + 6_000, 7_000, first + 1),
        launch(at + 2_650, first + 2, AUTOGRAD),
        kernel("ncclDevKernel_AllReduce_Sum_f32", at + 13_000, 2_000, first + 2, 20),
        row("Optimizer.step#SGD.step", "user_annotation", at + 18_800, 1_150),
        row("aten::_foreach_add_", "cpu_op", at + 18_900, 100),
        launch(at + 18_950, first + 3),
        kernel("multi_tensor_apply_kernel", at + 19_000, 1_000, first + 3),
    ]  # fmt: skip
    if profiler:
        events.append(row(f"ProfilerStep#{number}", "user_annotation", at, STEP))
    return events


def steps(numbers: Sequence[int], *, begin: float = BEGIN, profiler: bool = True) -> Events:
    return [event for number in numbers for event in step(number, begin=begin, profiler=profiler)]


def report_of(events: Events, samples: RankSamples | None = None, **head: Any) -> Report:
    """The report of the one rank that recorded `events`."""
    data = json.dumps({"traceEvents": events, **head}).encode()
    summary = summarise_file(
        lambda: io.BytesIO(data), "rank0.json", samples=samples, assigned=0, terms=RecordingTerms(),
        problems=Problems(),
    )  # fmt: skip
    return assemble(merge([[summary]]), title="t", made_unix_ns=0)
