"""Makes the generated traces anew, each with its truth, which nothing of ours has measured: it is planted or counted.

    python tests/data/traces/generate.py FOLDER

No test makes the committed ones anew: they guard against a generator that changes together with the analyzer.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from harness.traces.planted.jobs import PlantedJob  # noqa: E402
from harness.traces.planted.shapes import JobShape, PlantedFault  # noqa: E402
from harness.traces.planted.traces import plant  # noqa: E402
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of  # noqa: E402

MAIN, AUTOGRAD = 11, 12
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Events = list[dict[str, Any]]


def row(category: str, name: str, start: int, end: int, process: int, thread: int, **args: Any) -> dict[str, Any]:
    """Times in µs."""
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": end - start,
            "args": args}  # fmt: skip


def work(
    name: str, start: int, end: int, correlation: int, stream: int = 7, category: str = "kernel", **args: Any
) -> dict[str, Any]:
    return row(category, name, start, end, 0, stream, device=0, stream=stream, correlation=correlation, **args)


def host(
    name: str,
    start: int,
    end: int,
    thread: int = MAIN,
    category: str = "cpu_op",
    sequence: int | None = None,
    **args: Any,
) -> dict[str, Any]:
    if sequence is not None:
        args["Sequence number"] = sequence
    return row(category, name, start, end, 1, thread, **args)


def launch(at: int, correlation: int, thread: int = MAIN, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return host(name, at, at + 5, thread, "cuda_runtime", correlation=correlation)


# ---------------------------------------------------------------- a loop that can be counted by hand


def loop(iterations: int) -> Events:
    """Iterations of 1000 µs.

    Device: gemm 160-360, loss 360-400, backward 400-600, all-reduce 500-640, optimizer 710-860, a copy 860-880.
    """
    events: Events = []
    for number in range(iterations):
        at, first = 1000 * number, 10 * number
        events += [
            host(f"ProfilerStep#{number}", at, at + 1000, category="user_annotation"),
            host("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, at + 100,
                 category="user_annotation"),
            host("Optimizer.zero_grad#SGD.zero_grad", at + 100, at + 120, category="user_annotation"),
            host("aten::linear", at + 120, at + 300, sequence=first + 1),
            launch(at + 150, first + 1), work("gemm", at + 160, at + 360, first + 1),
            host("aten::mse_loss", at + 300, at + 340, sequence=first + 2),
            launch(at + 310, first + 2), work("mse", at + 360, at + 400, first + 2),
            host("autograd::engine::evaluate_function: MseLossBackward0", at + 350, at + 370, AUTOGRAD,
                 sequence=first + 2),
            host("autograd::engine::evaluate_function: AddmmBackward0", at + 370, at + 570, AUTOGRAD,
                 sequence=first + 1),
            launch(at + 380, first + 3, AUTOGRAD), work("gemm_backward", at + 400, at + 600, first + 3),
            launch(at + 480, first + 4, AUTOGRAD), work(ALL_REDUCE, at + 500, at + 640, first + 4, 20),
            host("Optimizer.step#SGD.step", at + 570, at + 900, category="user_annotation"),
            host("aten::item", at + 575, at + 650),
            host("cudaStreamSynchronize", at + 580, at + 645, category="cuda_runtime", correlation=first + 7),
            host("aten::_foreach_add_", at + 680, at + 890),
            launch(at + 700, first + 5), work("update", at + 710, at + 860, first + 5),
            launch(at + 800, first + 6, name="cudaMemcpyAsync"),
            work("Memcpy DtoH (Device -> Pinned)", at + 860, at + 880, first + 6, category="gpu_memcpy", bytes=4096),
        ]  # fmt: skip
    return events


def truth_of_loop(iterations: int) -> dict[str, Any]:
    """µs, counted by hand from the times above.

    Of each gap 640-710 the host is late until 700: a call that blocks covers 640, so that is synchronisation, 5 of it
    inside the call; 10 are launching. Of each gap 880-1160 the host is late until 1150: the optimizer's step until 900,
    Python until 1000, the loader until 1100, zero_grad until 1120, an operator until 1150; 10 are launching.
    """
    n, between = iterations, iterations - 1
    return {
        "time_us": {
            "span": 720 * n + 280 * between, "compute": 590 * n, "overlapped_communication": 100 * n,
            "exposed_communication": 40 * n, "exposed_memory": 20 * n, "idle": 70 * n + 280 * between,
        },
        "idle_us": {
            "synchronization": 60 * n, "synchronization_blocked": 5 * n, "launching": 10 * n + 10 * between,
            "optimizer": 40 * between, "data_loading": 100 * between, "host": 130 * between,
            "host_python": 100 * between, "host_operators": 30 * between, "waiting": 0, "unknown": 0,
        },
        "stages_us": {
            "data_loading": 100 * n, "zero_grad": 20 * n, "forward": 180 * n, "loss": 40 * n, "backward": 230 * n,
            "optimizer": 330 * n, "other": 100 * n,
        },
        "iterations": [[number, 1000 * number, 1000] for number in range(n)],
    }  # fmt: skip


# ---------------------------------------------------------------- a rank that is late by 300 µs

RANKS, LATE_RANK, STEPS = 4, 2, 4


def late(rank: int, *, name: str = ALL_REDUCE, stream: int = 20, skew_us: int = 0, missing: int = 0) -> Events:
    """Iterations of 1000 µs: work of 400 µs, of 700 on rank 2; an all-reduce that all leave at 900."""
    events: Events = []
    for step in range(1, STEPS + 1):
        if step == missing:
            continue
        at, ends = 1000 * step + skew_us, 700 if rank == LATE_RANK else 400
        arguments: dict[str, Any] = {
            "Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Process Group Name": "0",
            "Process Group Ranks": "[0, 1, 2, 3]", "Group size": RANKS, "Seq": step,
        }  # fmt: skip
        events += [
            host(f"ProfilerStep#{step}", at, at + 1000, category="user_annotation"),
            host("aten::mm", at, at + 30),
            launch(at, 10 * step), work("gemm", at + 10, at + 10 + ends, 10 * step),
            launch(at + 20, 10 * step + 1), work(name, at + 10 + ends, at + 900, 10 * step + 1, stream, **arguments),
        ]  # fmt: skip
    return events


WRITINGS: dict[str, dict[str, Any]] = {
    "late_rank": {},
    "late_rank_old_names": {"name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"},
    "late_rank_stream_0": {"stream": 0},
    "late_rank_skewed_clocks": {},  # of ranks 0 and 1, by 350 µs
    "late_rank_without_a_step": {},  # rank 3 without its first
}


def write(target: Path, rank: int, events: Events | str) -> None:
    text = events
    if not isinstance(events, str):
        head = {"backend": "nccl", "rank": rank, "world_size": RANKS}
        text = json.dumps({"schemaVersion": 1, "distributedInfo": head, "traceEvents": events}, separators=(",", ":"))
    target.mkdir(parents=True, exist_ok=True)
    (target / f"rank{rank}.json.gz").write_bytes(gzip.compress(str(text).encode(), 9, mtime=0))


def tell(target: Path, truth: dict[str, Any]) -> None:
    (target / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def main(folder: Path) -> None:
    for name, iterations in (("gpu_loop", 5), ("gpu_one_step", 1)):
        write(folder / name, 0, loop(iterations))
        tell(folder / name, truth_of_loop(iterations))
    planted = plant(0, iterations=3, world_size=1)
    write(folder / "gpu_streams", 0, planted.text())
    tell(folder / "gpu_streams", {"time_ns": planted.truth})
    for name, options in WRITINGS.items():
        for rank in range(RANKS):
            more: dict[str, Any] = {}
            if name.endswith("clocks"):
                more = {"skew_us": {0: 350, 1: -350}.get(rank, 0)}
            if name.endswith("step") and rank == 3:
                more = {"missing": 1}
            write(folder / name, rank, late(rank, **options, **more))
    shape = JobShape(dp=2, tp=2, layers=2, buckets=2, iterations=6)
    slow = np.ones((shape.ranks, shape.iterations))
    slow[LATE_RANK] = 1.5
    for name, fault in (
        ("gpu_slow_rank", PlantedFault("slow_gpu", LATE_RANK, device=slow)),
        ("gpu_healthy", PlantedFault()),
    ):
        job = PlantedJob(shape, fault, 1)
        for trace in traces_of(job, Clarity(), 1):
            assert trace.metadata.rank is not None
            write(folder / name, trace.metadata.rank, json_of(trace))
        gain = 1 - PlantedJob(shape, PlantedFault(), 1).length_ns / job.length_ns
        tell(folder / name, {"rank": fault.rank, "cause": "slow_gpu" if fault.rank >= 0 else None, "gain": gain})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
