"""The causes of a device's idle time: planted gaps by hand, exact sums, and a naive twin on real traces."""

import io
import itertools
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.rank.measures.breakdown import measure_before, measure_iterations
from fleetprof_analyzer.rank.measures.course import bound_moments
from fleetprof_analyzer.rank.measures.device_time import add_iteration_idle, explain_idle, list_devices
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.idle.gaps import delay_limit
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import DeviceTime, Iteration
from harness.reference.naive_events import load, no_collections, read_rows
from harness.reference.naive_idle import naive_idle, naive_idle_within, read_devices
from harness.traces.kept_traces import GENERATED, traces_in, truth_of
from harness.traces.planted.traces import plant
from hypothesis import given, settings
from hypothesis import strategies as st

MAIN, AUTOGRAD, LOADER = 11, 12, 13
US = 1000


def gpu(start: int, end: int, correlation: int, *, stream: int = 7, category: str = "kernel") -> dict[str, Any]:
    """A device row, times in µs."""
    args = {"device": 0, "stream": stream, "correlation": correlation}
    return {"ph": "X", "cat": category, "name": "gemm", "pid": 0, "tid": stream, "ts": start, "dur": end - start,
            "args": args}  # fmt: skip


def host(
    name: str, start: int, end: int, *, category: str = "cpu_op", thread: int = MAIN, correlation: int | None = None
) -> dict[str, Any]:
    args = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": end - start,
            "args": args}  # fmt: skip


def call(name: str, start: int, end: int, correlation: int | None = None, thread: int = MAIN) -> dict[str, Any]:
    return host(name, start, end, category="cuda_runtime", correlation=correlation, thread=thread)


def launch(start: int, end: int, correlation: int, thread: int = MAIN) -> dict[str, Any]:
    return call("cudaLaunchKernel", start, end, correlation, thread)


def read(events: list[dict[str, Any]]) -> Trace:
    return read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())


def measure(trace: Trace) -> list[DeviceTime]:
    works = split_devices(trace)
    return list_devices(works, explain_idle(trace, works, find_calls(trace), []))


def measure_within(trace: Trace, windows: list[tuple[int, int]]) -> list[Iteration]:
    """Each window as an iteration, with its time and the causes of its idle time over all devices."""
    calls, works = find_calls(trace), split_devices(trace)
    found = [Iteration(index=n, start_ns=a, duration_ns=b - a) for n, (a, b) in enumerate(windows)]
    causes = [one.of_iterations for one in explain_idle(trace, works, calls, found)]
    before = measure_before(works, bound_moments(found))
    return add_iteration_idle(measure_iterations(before, len(works), found), causes)


def given_causes(idle: IdleCauses | None) -> dict[str, int]:
    assert idle is not None
    return {name: value // US for name in idle.__struct_fields__ if (value := getattr(idle, name))}


# Work from 0 to 100 and from 200 to 210 µs: a gap of 100 µs, which the launch with correlation 2 ends.
FRAME = [gpu(0, 100, 1), gpu(200, 210, 2), launch(-10, -5, 1)]


@pytest.mark.parametrize(
    ("events", "causes"),
    [
        # Launched after the gap began: the host was late, then the call, then the delay.
        ([launch(150, 156, 2), host("aten::mm", 100, 200)],
         {"host": 50, "host_operators": 50, "launching": 6 + 20, "waiting": 24}),
        ([launch(190, 196, 2), host("aten::mm", 120, 200)],
         {"host": 90, "host_operators": 70, "host_python": 20, "launching": 10}),
        # Launched before it began: what it waits for is other work or an event.
        ([launch(50, 56, 2), host("aten::mm", 0, 60)], {"waiting": 100}),
        ([launch(95, 120, 2), host("aten::mm", 0, 130)], {"launching": 20, "waiting": 80}),
        # The order of explanations: data > blocking > allocation > optimizer > other calls > operators > Python.
        ([launch(195, 200, 2), host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 130),
          call("cudaMalloc", 120, 150), host("aten::empty", 110, 190), call("cudaEventQuery", 145, 160)],
         {"data_loading": 30, "host": 65, "host_allocation": 20, "host_runtime": 10, "host_operators": 30,
          "host_python": 5, "launching": 5}),
        ([launch(200, 203, 2), host("Optimizer.step#AdamW.step", 90, 180, category="user_annotation"),
          host("aten::add_", 100, 150)], {"optimizer": 80, "host": 20, "host_python": 20}),
        # A call that blocks across the gap's begin has drained the device: all but data loading is its fault.
        ([launch(190, 200, 2), call("cudaStreamSynchronize", 40, 110), host("aten::item", 30, 112),
          host("aten::mm", 130, 200)], {"synchronization": 90, "synchronization_blocked": 10, "launching": 10}),
        ([launch(190, 200, 2), call("cudaStreamSynchronize", 40, 100), host("aten::mm", 130, 200)],
         {"synchronization": 90, "launching": 10}),
        ([launch(190, 200, 2), call("cudaDeviceSynchronize", 110, 150), host("aten::mm", 130, 200)],
         {"synchronization": 40, "synchronization_blocked": 40, "host": 50, "host_operators": 40, "host_python": 10,
          "launching": 10}),
        # A copy call that returns only when its copy is over blocks, whatever it is called.
        ([launch(190, 200, 2), gpu(20, 60, 3, stream=8, category="gpu_memcpy"), call("cudaMemcpyAsync", 15, 105, 3),
          host("aten::mm", 105, 200)], {"synchronization": 90, "synchronization_blocked": 5, "launching": 10}),
        # Another thread that launches here explains what this one does not; a thread that never launches does not.
        ([launch(190, 200, 2, AUTOGRAD), host("aten::mm", 100, 140),
          host("aten::mm_backward", 150, 200, thread=AUTOGRAD), host("aten::collate", 100, 190, thread=LOADER)],
         {"host": 90, "host_operators": 80, "host_python": 10, "launching": 10}),
        # No launch record, or a host that was not recorded.
        ([host("aten::mm", 100, 200)], {"unknown": 100}),
        ([launch(190, 200, 2)], {"unknown": 90, "launching": 10}),
        # The runtime's call with the driver's inside counts once; the first of several rows that start together counts.
        ([launch(190, 196, 2), call("cuLaunchKernel", 192, 195, 2), host("aten::mm", 90, 200)],
         {"host": 90, "host_operators": 90, "launching": 10}),
        ([launch(190, 196, 2), gpu(200, 205, 9, stream=8), launch(110, 112, 9), host("aten::mm", 90, 200)],
         {"host": 10, "host_operators": 10, "launching": 2 + 20, "waiting": 68}),
        # A clock that puts the launch behind the start leaves no time to the call.
        ([launch(205, 208, 2), host("aten::mm", 90, 200)], {"host": 100, "host_operators": 100}),
    ],
)  # fmt: skip
def test_planted_gaps(events: list[dict[str, Any]], causes: dict[str, int]) -> None:
    (device,) = measure(read([*FRAME, *events]))
    assert device.time_ns.idle == 100 * US
    assert given_causes(device.idle_ns) == causes


def test_short_waits_are_told_from_long_ones() -> None:
    events = [gpu(0, 100, 1), gpu(103, 200, 2), gpu(260, 300, 3), host("aten::mm", -20, 0)]
    events += [launch(-10 + number, -9 + number, number) for number in (1, 2, 3)]
    (device,) = measure(read(events))
    assert given_causes(device.idle_ns) == {"waiting": 63, "waiting_short": 3}


@pytest.mark.parametrize(
    ("delays", "limit"),
    [
        ([], 5000),
        ([1], 5000),
        ([90_000], 20_000),
        (list(range(1000, 11_000, 1000)), 9000),
        ([7000] * 9 + [10**6], 7000),
    ],
)
def test_the_delay_of_a_launch_is_the_devices_own(delays: list[int], limit: int) -> None:
    assert delay_limit(np.array(delays, np.int64)) == limit


@pytest.mark.parametrize(
    ("events", "host_wait", "kernel_wait", "other"),
    [
        ([gpu(0, 10, 1), gpu(50, 60, 2), launch(-9, -8, 1), launch(20, 25, 2)], 40, 0, 0),
        ([gpu(0, 10, 1), gpu(30, 60, 2), launch(-9, -8, 1), launch(-7, -6, 2)], 0, 20, 0),
        ([gpu(0, 10, 1), gpu(50, 60, 2), launch(-9, -8, 1), launch(-7, -6, 2)], 0, 0, 40),
        # Streams by themselves: the device is never idle here, its streams are.
        ([gpu(0, 10, 1), gpu(10, 40, 2, stream=8), gpu(40, 50, 3), launch(-9, -8, 1), launch(-7, -6, 3)], 0, 0, 30),
        # Rows that overlap on one stream have no negative gap.
        ([gpu(0, 50, 1), gpu(20, 40, 2), gpu(60, 70, 3), launch(-9, -8, 1), launch(-7, -6, 3)], 0, 10, 0),
    ],
)
def test_htas_categories_of_each_stream(events: list[Any], host_wait: int, kernel_wait: int, other: int) -> None:
    (device,) = measure(read(events))
    idle = device.stream_idle_ns
    assert idle is not None
    assert (idle.host_wait, idle.kernel_wait, idle.other) == (host_wait * US, kernel_wait * US, other * US)


def test_iterations_cut_gaps_and_reach_beyond_the_devices_work() -> None:
    """The end of the gap before the first work is its launch; what follows the last is told by the thread's doings."""
    events = [*FRAME, launch(190, 204, 2), host("aten::mm", 100, 150), host("aten::item", 210, 250)]
    windows = [(-20, 120), (120, 195), (195, 300), (300, 320)]
    found = measure_within(read(events), [(a * US, b * US) for a, b in windows])
    assert [given_causes(iteration.idle_ns) for iteration in found] == [
        {"host": 10 + 20, "host_operators": 20, "host_python": 10, "launching": 5 + 5},
        {"host": 70, "host_operators": 30, "host_python": 40, "launching": 5},
        {"launching": 5, "host": 90, "host_operators": 40, "host_python": 50},
        {"host": 20, "host_python": 20},
    ]


def test_the_first_hundred_iterations_are_explained() -> None:
    windows = [(number * US, (number + 1) * US) for number in range(130)]
    found = measure_within(read(FRAME), windows)
    assert [iteration.idle_ns is not None for iteration in found] == [True] * 100 + [False] * 30


def test_a_rank_without_a_device_has_no_causes_in_its_iterations() -> None:
    iteration = Iteration(index=1, start_ns=0, duration_ns=9)
    assert add_iteration_idle([iteration], []) == [iteration]


# ---------------------------------------------------------------- the naive twin


@no_collections()
def agree(document: Any, trace: Trace) -> None:
    rows = read_rows(document)
    devices = read_devices(rows)
    naive = naive_idle(devices)
    for device in measure(trace):
        assert device.idle_ns is not None
        found = {name: value for name in device.idle_ns.__struct_fields__ if (value := getattr(device.idle_ns, name))}
        assert found == {name: value for name, value in naive[device.device].items() if value}, device.device
    if not naive:
        return
    # Windows of thirds that reach beyond the work on both sides, with borders in gaps, rows and nowhere.
    low, high = min(row.start for row in rows) - 7, max(row.end for row in rows) + 7
    borders = [low, *sorted({low + (high - low) * third // 3 for third in (1, 2)}), high]
    windows = measure_within(trace, list(itertools.pairwise(borders)))
    for iteration, truth in zip(windows, naive_idle_within(devices, borders), strict=True):
        assert iteration.idle_ns is not None
        wanted = {name: truth[name] for name in IdleCauses.__struct_fields__}
        assert msgspec.to_builtins(iteration.idle_ns) == wanted, iteration.index


times = st.integers(0, 40)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(times, st.integers(0, 9), st.sampled_from([7, 8])), min_size=1, max_size=6),
    st.lists(st.tuples(times, st.integers(0, 9), st.integers(0, 5), st.sampled_from([MAIN, AUTOGRAD])), max_size=6),
    st.lists(
        st.tuples(
            times,
            st.integers(0, 12),
            st.sampled_from(["aten::mm", "enumerate(DataLoader)#x", "Optimizer.step#SGD.step", "ProfilerStep#3"]),
            st.sampled_from([MAIN, AUTOGRAD, LOADER]),
        ),
        max_size=6,
    ),
    st.lists(
        st.tuples(times, st.integers(0, 9), st.sampled_from(["cudaMalloc", "cudaStreamSynchronize", "cudaEventQuery"])),
        max_size=3,
    ),
)
def test_a_naive_twin_agrees_on_anything(work: Any, launches: Any, ranges: Any, calls: Any) -> None:
    events = [gpu(start, start + length, number, stream=stream) for number, (start, length, stream) in enumerate(work)]
    events += [launch(start, start + length, number, thread) for start, length, number, thread in launches]
    events += [host(name, start, start + length, thread=thread) for start, length, name, thread in ranges]
    events += [call(name, start, start + length) for start, length, name in calls]
    agree({"traceEvents": events}, read(events))


def test_a_naive_twin_agrees_on_planted_traces() -> None:
    for seed in range(3):
        planted = plant(seed, seed=seed)
        agree(
            json.loads(planted.text(), parse_float=Decimal), read_trace(io.BytesIO(planted.gzipped()), "t", Problems())
        )


@pytest.mark.parametrize(
    "folder",
    [*GENERATED, "dlrm_v100_8ranks", "sampled_2of128", "nccl_a100", "df_index_v100", "resnet50_v100_old",
     "inference_h100_mi300", "mi250_amd", "gpu_only_mi210"],
)  # fmt: skip
def test_a_naive_twin_agrees_on_real_traces(folder: str) -> None:
    for file in traces_in(folder):
        with file.open("rb") as opened:
            agree(load(file), read_trace(opened, file.name, Problems()))


@pytest.mark.parametrize("folder", ["gpu_loop", "gpu_one_step"])
def test_causes_that_were_counted_by_hand(folder: str) -> None:
    (file,) = traces_in(folder)
    (device,) = measure(read_trace(io.BytesIO(file.read_bytes()), "t", Problems()))
    assert given_causes(device.idle_ns) == {name: value for name, value in truth_of(folder)["idle_us"].items() if value}


@pytest.mark.parametrize(
    ("file", "idle_us", "permille"),
    [
        # Measured by another implementation of the same procedure: parts per thousand of the idle time.
        ("dlrm_v100_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz", 6419,
         {"data_loading": 35, "synchronization": 105, "launching": 198, "host": 616, "optimizer": 36, "waiting": 11}),
        ("nccl_a100/nccl_data.json.gz", 503_100,
         {"launching": 59, "host": 853, "optimizer": 85, "waiting": 4}),
    ],
)  # fmt: skip
def test_known_shares(shared_traces: Path, file: str, idle_us: int, permille: dict[str, int]) -> None:
    with (shared_traces / file).open("rb") as opened:
        (device,) = measure(read_trace(opened, file, Problems()))
    assert device.idle_ns is not None
    assert device.time_ns.idle // US == pytest.approx(idle_us, rel=1e-3)
    shares = Counter({name: 1000 * getattr(device.idle_ns, name) / device.time_ns.idle for name in permille})
    for name, expected in permille.items():
        assert shares[name] == pytest.approx(expected, abs=15), (name, shares)
