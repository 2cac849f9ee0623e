"""Training loops as a host records them, row by row, and the stages that the analyzer finds in them. Times in µs."""

import io
import json
from typing import Any

from fleetprof_analyzer.rank.host.track import Track
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.stages.stages import find_stages, sum_up
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_api.report.report_tables import Stages

MAIN, AUTOGRAD = 1, 2
US = 1000


def row(
    name: str,
    start: int,
    end: int,
    *,
    thread: int = MAIN,
    category: str = "cpu_op",
    sequence: int | None = None,
    **args: Any,
) -> dict[str, Any]:
    if sequence is not None:
        args["Sequence number"] = sequence
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": end - start,
            "args": args}  # fmt: skip


def numbered(sequence: int) -> dict[str, Any]:
    """The argument by which autograd's functions find their operator."""
    return {"Sequence number": sequence}


def kernel(start: int, end: int, correlation: int, name: str = "gemm", category: str = "kernel") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": 7, "correlation": correlation}}  # fmt: skip


def launch(at: int, correlation: int, thread: int = MAIN, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return row(name, at, at + 2, thread=thread, category="cuda_runtime", correlation=correlation)


def iteration(
    at: int, number: int, *, marks: bool = True, loader: bool = True, threads: bool = True
) -> list[dict[str, Any]]:
    """1000 µs: data 0-100, zero-grad 100-150, forward 150-450, loss 450-500, backward 500-800, optimizer 800-980."""
    back = AUTOGRAD if threads else MAIN
    base = 10 * number
    events = [
        row("aten::to", at + 60, at + 100),
        launch(at + 80, base + 1, name="cudaMemcpyAsync"),
        kernel(at + 82, at + 90, base + 1, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"),
        row("aten::linear", at + 150, at + 300, **numbered(base + 1)),
        row("aten::addmm", at + 160, at + 290, **numbered(base + 1)),
        row("aten::relu", at + 310, at + 440, **numbered(base + 2)),
        launch(at + 170, base + 2), kernel(at + 180, at + 400, base + 2),
        row("aten::mse_loss", at + 450, at + 500, **numbered(base + 3)),
        row("autograd::engine::evaluate_function: MseLossBackward0", at + 510, at + 560, thread=back,
            **numbered(base + 3)),
        row("autograd::engine::evaluate_function: ReluBackward0", at + 570, at + 650, thread=back,
            **numbered(base + 2)),
        row("autograd::engine::evaluate_function: AddmmBackward0", at + 660, at + 780, thread=back,
            **numbered(base + 1)),
        row("aten::mm", at + 670, at + 770, thread=back),
        row("nccl:all_reduce", at + 775, at + 800, thread=back, category="user_annotation"),
        launch(at + 680, base + 3, back), kernel(at + 700, at + 860, base + 3),
        row("aten::_foreach_add_", at + 830, at + 950),
        launch(at + 840, base + 4), kernel(at + 870, at + 900, base + 4),
    ]  # fmt: skip
    if loader:
        events.append(row("enumerate(DataLoader)#_Iter.__next__", at, at + 55, category="user_annotation"))
    if marks:
        events += [
            row("Optimizer.zero_grad#SGD.zero_grad", at + 100, at + 150, category="user_annotation"),
            row("Optimizer.step#SGD.step", at + 800, at + 980, category="user_annotation"),
            row(f"ProfilerStep#{number}", at, at + 1000, category="user_annotation"),
        ]
    return events


def read(events: list[dict[str, Any]]) -> Trace:
    return read_trace(io.BytesIO(json.dumps({"traceEvents": events}, default=str).encode()), "t", Problems())


def measure(trace: Trace, track: Track | None = None) -> Stages:
    found = find_iterations(trace, None, RecordingTerms(), Problems())
    calls = find_calls(trace)
    return sum_up(trace, calls, find_stages(trace, calls, found.iterations, found.marks), track)


def times(stages: Stages) -> dict[str, int]:
    return {stage.stage: stage.time_ns // US for stage in stages.stages}
