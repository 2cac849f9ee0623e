"""The launches of device work: calls, delays, queues. (A naive twin: test_tables.py.)"""

import io
import json
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.measures.breakdown import measure_device
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.kernels.launch_shift import find_shifts
from fleetprof_analyzer.rank.summary import summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report_tables import LaunchStatistics
from hypothesis import given
from hypothesis import strategies as st

US = 1000


def gpu(start: int, end: int, correlation: int | None = None) -> dict[str, Any]:
    arguments = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": 7, **arguments}}  # fmt: skip


def call(start: int, end: int, correlation: int, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start,
            "args": {"correlation": correlation}}  # fmt: skip


def measured(*events: dict[str, Any]) -> LaunchStatistics:
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())
    rank = summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=Problems()).rank
    assert rank is not None
    assert rank.launches is not None
    return rank.launches


def test_launches() -> None:
    found = measured(
        call(0, 5, 1), call(5, 9, 2), call(9, 2009, 3, "cudaGraphLaunch"),
        gpu(10, 12, 1), gpu(40, 100, 2), gpu(2010, 2020, 3), gpu(2020, 2030, 3), gpu(2030, 2031),
    )  # fmt: skip
    assert (found.launches, found.unlaunched, found.calls, found.slow_calls) == (4, 1, 3, 1)
    assert (found.call_p50_ns, found.call_p99_ns) == (5 * US, 2000 * US)
    assert (found.delay_p50_ns, found.delay_p99_ns) == (5 * US, 31 * US)
    # At the launches at 0, 5 and twice at 9 µs: 1, 2, 4 and 4 rows wait, their own included.
    assert (found.short, found.longest_queue, found.queue_p50, found.full_queue_ns) == (3, 4, 2, 0)


def test_a_queue_that_is_full_makes_the_next_call_wait() -> None:
    graph = [gpu(100 + number, 101 + number, 1) for number in range(1100)]
    found = measured(call(0, 5, 1, "cudaGraphLaunch"), *graph)
    # All 1,100 wait from 0 to 100 µs; the 77th begins at 176 µs, and leaves 1,023.
    assert (found.longest_queue, found.queue_p50, found.full_queue_ns) == (1100, 1100, 176 * US)


SHIFTS = {
    # The second kernel waits 90 µs for a call that Python held back for 95 µs: the work before it is the limit.
    "the kernel before limits": ([call(0, 5, 1), call(100, 105, 2)], [gpu(10, 20, 1), gpu(110, 120, 2)], 90),
    # Python held the call back for 20 µs; the gap is longer, because the first kernel was short.
    "the host limits": ([call(0, 5, 1), call(25, 30, 2)], [gpu(6, 7, 1), gpu(31, 40, 2)], 20),
    # Of the 20 µs between the launches another call takes 12 and a call of another thread inside it nothing more.
    "calls in between limit": (
        [call(0, 5, 1), call(8, 20, 9, "cudaEventRecord"), call(10, 15, 8, "cudaMalloc"), call(25, 30, 2)],
        [gpu(6, 7, 1), gpu(31, 40, 2)],
        8,
    ),
    "each launch adds to that of the one before": (
        [call(0, 5, 1), call(25, 30, 2), call(45, 50, 3)], [gpu(6, 7, 1), gpu(31, 40, 2), gpu(51, 60, 3)], 20 + 11
    ),
    "work that follows work cannot move nearer": (
        [call(0, 5, 1), call(25, 30, 2)], [gpu(6, 31, 1), gpu(31, 40, 2)], 0
    ),
    "a graph is launched once": (
        [call(0, 5, 1), call(25, 30, 2, "cudaGraphLaunch")], [gpu(6, 7, 1), gpu(31, 40, 2), gpu(90, 99, 2)], 20
    ),
    "other streams keep the device from being idle": (
        [call(0, 5, 1), call(25, 30, 2), call(50, 55, 3)], [gpu(6, 60, 1), gpu(31, 40, 2), gpu(62, 70, 3)], 2
    ),
    "nothing comes before the first launch": ([call(100, 105, 2)], [gpu(110, 120, 2)], 0),
    "work without a launch stays": ([call(0, 5, 1)], [gpu(6, 7, 1), gpu(90, 99)], 0),
}  # fmt: skip


@pytest.mark.parametrize(("calls", "work", "shift_us"), SHIFTS.values(), ids=SHIFTS)
def test_the_maximum_shift(calls: list[dict[str, Any]], work: list[dict[str, Any]], shift_us: int) -> None:
    assert measured(*calls, *work).maximum_shift_ns == shift_us * US


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 20), st.integers(0, 40), st.integers(0, 60)), max_size=12)
)
def test_launches_move_by_no_more_than_the_device_is_idle(drawn: list[tuple[int, int, int, int]]) -> None:
    calls = [call(start, start + length, number) for number, (start, length, _, _) in enumerate(drawn)]
    work = [
        gpu(start + length + delay, start + length + delay + lasts, number)
        for number, (start, length, delay, lasts) in enumerate(drawn)
    ]
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": calls + work}).encode()), "t", Problems())
    joined = find_calls(trace)
    for device in split_devices(trace):
        shifts = find_shifts(device, joined)
        assert (np.diff(shifts, prepend=0) >= 0).all()
        assert shifts.max(initial=0) <= measure_device(device).idle
