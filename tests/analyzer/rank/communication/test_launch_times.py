"""When a kernel counts as launched: the call is the host's own time, unless it waits for the work."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.rank.communication.launches import launch_times
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems

CALL = ("cuda_runtime", "cudaLaunchKernel", 100, 140)


@pytest.mark.parametrize(
    ("call", "work", "launched"),
    [
        (CALL, ("kernel", "gemm", 145, 200), 140),  # a slow host: the device waits for the call to return
        (CALL, ("kernel", "gemm", 400, 500), 140),  # queued behind other work
        (CALL, ("kernel", "gemm", 110, 120), 110),  # begun before the call returned
        (("cuda_runtime", "cudaMemcpyAsync", 100, 520), ("gpu_memcpy", "Memcpy HtoD", 400, 500), 100),  # waits for it
    ],
)
def test_when_work_was_launched(
    call: tuple[str, str, int, int], work: tuple[str, str, int, int], launched: int
) -> None:
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": [row(*call), row(*work)]}).encode()), "t", Problems())
    found = launch_times(trace, trace.rows.select(trace.rows.on_device))
    assert (found.called.tolist(), found.launched.tolist()) == ([1000 * call[2]], [1000 * launched])


def row(category: str, name: str, start: int, end: int) -> dict[str, Any]:
    arguments = {"correlation": 1} | ({} if category == "cuda_runtime" else {"device": 0, "stream": 7})
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 7, "ts": start, "dur": end - start,
            "args": arguments}  # fmt: skip
