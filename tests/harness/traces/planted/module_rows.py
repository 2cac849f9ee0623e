"""Rows of a trace in which modules are marked, in µs; those of the device have a correlation, of autograd a number."""

import json
from typing import Any

BASE = 1_790_857_026_000_000


def op(
    name: str, begin: float, end: float, number: int | None = None, thread: int = 1, **fields: Any
) -> dict[str, Any]:
    args = {} if number is None else {"Sequence number": number, "Fwd thread id": 0}
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": thread, "ts": BASE + begin, "dur": end - begin}
    return {**event, "args": args, **fields}


def module(name: str, begin: float, end: float, thread: int = 1, number: int = 0) -> dict[str, Any]:
    return op(f"fleetprof.module:{number} {name}", begin, end, thread=thread)


def node(name: str, begin: float, end: float, number: int | None = None, thread: int = 1) -> dict[str, Any]:
    return op(f"autograd::engine::evaluate_function: {name}", begin, end, number, thread)


def call(begin: float, correlation: int) -> dict[str, Any]:
    return op("cudaLaunchKernel", begin, begin + 2, cat="cuda_runtime", args={"correlation": correlation})


def kernel(begin: float, end: float, correlation: int) -> dict[str, Any]:
    return op(
        "gemm", begin, end, cat="kernel", pid=0, tid=7, args={"correlation": correlation, "device": 0, "stream": 7}
    )


def step(begin: float, end: float) -> dict[str, Any]:
    return op("Optimizer.step#SGD.step", begin, end, cat="user_annotation")


def marks(begin: float, end: float | None) -> list[dict[str, Any]]:
    ends = [] if end is None else [op("fleetprof.marks end", end, end)]
    return [op("fleetprof.marks begin", begin, begin), *ends]


def text_of(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps({"traceEvents": rows}, indent=1).encode()
