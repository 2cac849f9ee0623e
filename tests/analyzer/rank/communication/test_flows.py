"""The call that launched a row of work whose correlation a recorder has lost."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.rank.communication.flows import restore_flows
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace

LOST = -1
Call = tuple[int, int]  # (start, correlation)
Work = tuple[int, int, int]  # (start, stream, correlation)


@pytest.mark.parametrize(
    ("calls", "works", "launched"),
    [
        ([(10, 1), (20, LOST), (30, 3)], [(15, 7, 1), (25, 7, 2), (35, 7, 3)], [10, 20, 30]),
        ([(10, 1), (20, 2), (30, 3)], [(15, 7, 1), (25, 7, LOST), (35, 7, 3)], [10, 20, 30]),  # its own is lost
        ([(10, 1), (20, LOST), (30, 3)], [(15, 7, 1), (25, 7, LOST), (35, 7, 3)], [10, 20, 30]),
        ([(10, 1), (20, 8), (30, 3)], [(15, 7, 1), (25, 7, 2), (35, 7, 3)], [10, None, 30]),  # two that differ
        ([(10, 1), (30, 3), (40, LOST)], [(15, 7, 1), (25, 7, 2), (45, 7, 3)], [10, None, 30]),  # none in between
        # Of two streams the one whose launches are nearer leaves less choice.
        (
            [(10, 1), (12, LOST), (14, 3), (16, LOST)],
            [(40, 7, 1), (50, 7, 2), (60, 7, 3), (70, 9, 4)],
            [10, 12, 14, 16],
        ),
        # Rows of one stream are launched in their order.
        (
            [(10, 1), (12, LOST), (14, LOST), (16, 4)],
            [(40, 7, 1), (50, 7, 2), (60, 7, 3), (70, 7, 4)],
            [10, 12, 14, 16],
        ),
    ],
)
def test_a_lost_launch_lies_between_those_of_its_neighbors(
    calls: list[Call], works: list[Work], launched: list[int | None]
) -> None:
    assert launches(
        read([call("cudaLaunchKernel", *one) for one in calls] + [work("gemm", *one) for one in works])
    ) == [None if one is None else 1000 * one for one in launched]


def test_a_call_of_another_name_launched_something_else() -> None:
    copies = [call("cudaMemcpyAsync", 10, 1), work("copy", 15, 9, 1)]
    kernels = [call("cudaLaunchKernel", 20, 2), work("gemm", 25, 7, 2)]
    lost = [call("cudaMemcpyAsync", 30, LOST), call("cudaLaunchKernel", 40, LOST), work("gemm", 45, 7, 3)]
    assert launches(read(copies + kernels + lost)) == [10_000, 20_000, 40_000]


def test_a_lost_call_lies_between_those_of_its_numbers() -> None:
    """By their streams alone the row of stream 9, which can wait least, would have the first of both calls."""
    calls = [(10 * number, LOST if number in (4, 7) else number) for number in range(1, 11)]
    works = [(200 + number, 5 if number in (5, 6) else 7, number) for number in range(1, 11) if number != 7]
    trace = read(
        [call("cudaLaunchKernel", *one) for one in calls] + [work("gemm", *one) for one in (*works, (75, 9, 7))]
    )
    assert launches(trace) == [1000 * 10 * number for number in (7, 1, 2, 3, 4, 5, 6, 8, 9, 10)]


def test_where_nothing_is_lost_the_trace_stays_as_it_is() -> None:
    trace = read([call("cudaLaunchKernel", 10, 1), work("gemm", 15, 7, 1), work("gemm", 25, 7, 2)])
    assert restore_flows(trace) is trace


def launches(trace: Trace) -> list[int | None]:
    """The launch time of each row of work, in the order of the work."""
    rows = restore_flows(trace).rows
    start = {
        number: at for number, at, on_device in zip(rows.correlation, rows.start_ns, rows.on_device, strict=True)
        if number >= 0 and not on_device
    }  # fmt: skip
    device = rows.select(rows.on_device)
    return [start.get(number) for _, number in sorted(zip(device.start_ns, device.correlation, strict=True))]


def read(events: list[dict[str, Any]]) -> Trace:
    return read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())


def call(name: str, start: int, number: int) -> dict[str, Any]:
    return _row("cuda_runtime", name, start, 77, {} if number == LOST else {"correlation": number})


def work(name: str, start: int, stream: int, number: int) -> dict[str, Any]:
    arguments = {"device": 0, "stream": stream} | ({} if number == LOST else {"correlation": number})
    return _row("kernel", name, start, stream, arguments)


def _row(category: str, name: str, start: int, thread: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": 2, "args": arguments}
