"""Time breakdowns agree with planted truth, with brute force on random rows, and with a naive twin on real traces."""

import gzip
import io
import itertools
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.rank.measures.breakdown import add, find_host_work, measure_device
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel, is_host_annotation, is_host_communication
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Category, Rows, Trace, TraceMetadata
from fleetprof_api.report.report import TimeBreakdown
from harness.traces.kept_traces import GENERATED, RECORDED, traces_in, truth_of
from harness.traces.planted.traces import plant
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["gemm", "ncclDevKernel_AllReduce", "Memcpy HtoD", "gloo:all_reduce", "aten::mm", "c10d::allreduce_"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(list(Category)), st.integers(0, 5), st.integers(0, 2), st.integers(0, 40), st.integers(0, 15)
    ),
    max_size=20,
)


def trace_of(rows: list[tuple[Category, int, int, int, int]]) -> Trace:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    kinds = (np.int8, np.int32, np.int32, np.int64, np.int64)
    unsaid = [np.full(len(rows), -1, kind) for kind in (np.int64, np.int32, np.int32, np.int64)]
    made = Rows(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)), *unsaid)
    return Trace("t", TraceMetadata(), made, NAMES, [("0", "7"), ("0", "9"), ("1", "7")])


def brute_force(work: list[tuple[WorkClass, int, int]]) -> TimeBreakdown:
    """Counts nanosecond by nanosecond."""
    if not work:
        return TimeBreakdown()
    begin, end = min(s for _, s, _ in work), max(s + d for _, s, d in work)
    counts: dict[str, int] = defaultdict(int)
    for now in range(begin, end):
        running = {kind for kind, start, size in work if start <= now < start + size}
        counts["span"] += 1
        if WorkClass.COMPUTE in running:
            counts["compute"] += 1
            counts["overlapped_communication"] += WorkClass.COMMUNICATION in running
        elif WorkClass.COMMUNICATION in running:
            counts["exposed_communication"] += 1
        elif WorkClass.MEMORY in running:
            counts["exposed_memory"] += 1
        else:
            counts["idle"] += 1
    return TimeBreakdown(**counts)


@given(ROWS)
def test_devices_agree_with_brute_force(rows: list[tuple[Category, int, int, int, int]]) -> None:
    work: dict[str, list[tuple[WorkClass, int, int]]] = defaultdict(list)
    for category, name, place, start, size in rows:
        if category is Category.KERNEL:
            work["01"[place == 2]].append((classify_kernel(NAMES[name]), start, size))
        elif category in (Category.MEMCPY, Category.MEMSET):
            work["01"[place == 2]].append((WorkClass.MEMORY, start, size))
    found = {work.device: measure_device(work) for work in split_devices(trace_of(rows))}
    assert found == {device: brute_force(items) for device, items in work.items()}


@given(ROWS)
def test_hosts_agree_with_brute_force(rows: list[tuple[Category, int, int, int, int]]) -> None:
    host = [row for row in rows if row[0] >= Category.OPERATOR]
    collectives = [row for row in host if is_host_communication(NAMES[row[1]])]
    work = [(WorkClass.COMMUNICATION, start, size) for *_, start, size in collectives]
    for category, name, place, start, size in host:
        inside = any(p == place and s <= start < s + d for _, _, p, s, d in collectives)
        if category is Category.OPERATOR and not is_host_communication(NAMES[name]) and not inside:
            work.append((WorkClass.COMPUTE, start, size))
    assert measure_device(find_host_work(trace_of(rows))) == brute_force(work)


@given(st.lists(ROWS, max_size=4))
def test_sums_add_up_like_their_parts(parts: list[Any]) -> None:
    total = add([measure_device(work) for rows in parts for work in split_devices(trace_of(rows))])
    assert total.span == total.compute + total.exposed_communication + total.exposed_memory + total.idle
    assert total.overlapped_communication <= total.compute


@pytest.mark.parametrize("seed", range(5))
def test_planted_truth_is_found_to_the_nanosecond(seed: int) -> None:
    planted = plant(seed, seed=seed, iterations=3)
    trace = read_trace(io.BytesIO(planted.gzipped()), "t", Problems())
    (work,) = split_devices(trace)
    assert {name: getattr(measure_device(work), name) for name in planted.truth} == planted.truth


@pytest.mark.parametrize(("folder", "unit"), [("gpu_loop", "us"), ("gpu_one_step", "us"), ("gpu_streams", "ns")])
def test_the_truth_of_generated_traces_is_found(folder: str, unit: str) -> None:
    truth = truth_of(folder)[f"time_{unit}"]
    (file,) = traces_in(folder)
    (work,) = split_devices(read_trace(io.BytesIO(file.read_bytes()), "t", Problems()))
    scale = {"us": 1000, "ns": 1}[unit]
    assert {name: getattr(measure_device(work), name) for name in truth} == {
        name: scale * value for name, value in truth.items()
    }


# ------------------------------------------------- a naive twin: plain json, Decimal, sets of points in a sweep

REAL = [
    *RECORDED,
    *GENERATED,
    "cpu_only",
    "ddp4_gloo_cpu",
    "dlrm_v100_8ranks",
    "sampled_2of128",
    "nccl_a100",
    "inference_h100_mi300",
    "mi250_amd",
    "gpu_only_mi210",
]
DEVICE = {"kernel": None, "Kernel": None, "gpu_memcpy": 2, "Memcpy": 2, "gpu_memset": 2, "Memset": 2}


def nanoseconds(value: Any) -> int:
    return int(Decimal(value) * 1000)


def naive(document: Any) -> tuple[str, dict[str, int]]:
    events = document["traceEvents"] if isinstance(document, dict) else document
    events = [event for event in events if event.get("ph") == "X"]
    spans = [(e, nanoseconds(e["ts"]), nanoseconds(e["ts"]) + nanoseconds(e["dur"])) for e in events]
    gpu = [
        (WorkClass.MEMORY if DEVICE[e["cat"]] else classify_kernel(e["name"]), s, t)
        for e, s, t in spans
        if e["cat"] in DEVICE
    ]
    if gpu:
        return "gpu", sweep(gpu)
    host = [(e, s, t) for e, s, t in spans if e["cat"] in ("cpu_op", "user_annotation")]
    collectives = [(e, s, t) for e, s, t in host if is_host_communication(e["name"])]
    work = [(WorkClass.COMMUNICATION, s, t) for _, s, t in collectives]
    for e, s, t in host:
        if e["cat"] == "cpu_op" and not is_host_communication(e["name"]) and not is_host_annotation(e["name"]):
            same = [(a, b) for c, a, b in collectives if (c["pid"], c["tid"]) == (e["pid"], e["tid"])]
            if not any(a <= s < b for a, b in same):
                work.append((WorkClass.COMPUTE, s, t))
    return "cpu", sweep(work)


def sweep(work: list[tuple[WorkClass, int, int]]) -> dict[str, int]:
    times = sorted({time for _, start, end in work for time in (start, end)})
    changes: dict[int, list[tuple[WorkClass, int]]] = defaultdict(list)
    for kind, start, end in work:
        if end > start:
            changes[start].append((kind, 1))
            changes[end].append((kind, -1))
    running = dict.fromkeys(WorkClass, 0)
    truth = dict.fromkeys(TimeBreakdown.__struct_fields__, 0)
    for now, then in itertools.pairwise(times):
        for kind, change in changes[now]:
            running[kind] += change
        passed = then - now
        truth["span"] += passed
        if running[WorkClass.COMPUTE]:
            truth["compute"] += passed
            truth["overlapped_communication"] += passed if running[WorkClass.COMMUNICATION] else 0
        elif running[WorkClass.COMMUNICATION]:
            truth["exposed_communication"] += passed
        elif running[WorkClass.MEMORY]:
            truth["exposed_memory"] += passed
        else:
            truth["idle"] += passed
    return truth


@pytest.mark.parametrize("folder", REAL)
def test_real_traces_agree_with_a_naive_twin_to_the_nanosecond(folder: str) -> None:
    for file in traces_in(folder):
        data = gzip.decompress(file.read_bytes())
        kind, truth = naive(json.loads(data, parse_float=Decimal))
        trace = read_trace(io.BytesIO(data), file.name, Problems())
        devices = [measure_device(work) for work in split_devices(trace)]
        found = add(devices) if devices else measure_device(find_host_work(trace))
        assert {name: getattr(found, name) for name in truth} == truth, file.name
        assert kind == ("gpu" if devices else "cpu")
