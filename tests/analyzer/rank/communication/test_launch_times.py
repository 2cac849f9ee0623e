"""The launch time of a kernel: the call is the host's own time, unless it waits for the work."""

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


@pytest.mark.parametrize(
    ("works", "launched"),
    [
        ([(100, 7, 5), (250, 7, 1)], [99, 200]),  # before the window, whose first row begins at 100
        ([(100, 7, 5), (110, 9, 6), (250, 7, 1), (260, 9, 2)], [98, 99, 200, 210]),  # of two streams, as they began
        ([(230, 7, 1), (250, 7, 5)], [200, 200]),  # in the middle: with the row before
        ([(230, 7, 1), (250, 9, 5)], [200, 250]),  # a stream whose launches are not recorded
    ],
)
def test_when_work_was_launched_whose_call_is_missing(works: list[tuple[int, int, int]], launched: list[int]) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "step", "pid": 1, "tid": 7, "ts": 0.1, "dur": 1}]
    events += [numbered("cuda_runtime", "launch", *one) for one in ((0.2, 7, 1), (0.21, 7, 2))]
    events += [numbered("kernel", f"gemm{number}", start / 1000, stream, number) for start, stream, number in works]
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())
    work = trace.rows.select(trace.rows.on_device)
    found = dict(zip(work.start_ns.tolist(), launch_times(trace, work).called.tolist(), strict=True))
    assert [found[start] for start, _, _ in works] == launched


@pytest.mark.parametrize(
    ("lost", "works", "called"),
    [
        # Until the next call, however early the row before was launched and however late it begins.
        ([5], {5: 2_000}, [599]),
        ([5, 6], {5: 2_000, 6: 2_010}, [698, 699]),  # in their order, whichever begins first
        ([5, 6], {5: 2_010, 6: 2_000}, [698, 699]),
        ([5], {5: 570}, [570]),  # a row that begins before the next call
        ([], {5: 2_000}, [500]),
    ],
)
def test_a_call_whose_row_is_missing_was_made_in_the_order_of_numbers(
    lost: list[int], works: dict[int, int], called: list[int]
) -> None:
    calls = [numbered("cuda_runtime", "launch", one / 10, 7, one) for one in range(1, 12) if one not in lost]
    others = [numbered("kernel", "gemm", 1.2 + one / 10, 7, one) for one in range(1, 12) if one not in works]
    events = calls + others + [numbered("kernel", "reduce", start / 1000, 9, one) for one, start in works.items()]
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())
    work = trace.rows.select(trace.rows.on_device)
    found = dict(zip(work.correlation.tolist(), launch_times(trace, work).called.tolist(), strict=True))
    assert [found[number] for number in works] == called


def numbered(category: str, name: str, start: float, stream: int, number: int) -> dict[str, Any]:
    device = {} if category == "cuda_runtime" else {"device": 0, "stream": stream}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": stream, "ts": start, "dur": 0.01,
            "args": {"correlation": number} | device}  # fmt: skip


def row(category: str, name: str, start: int, end: int) -> dict[str, Any]:
    arguments = {"correlation": 1} | ({} if category == "cuda_runtime" else {"device": 0, "stream": 7})
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 7, "ts": start, "dur": end - start,
            "args": arguments}  # fmt: skip
