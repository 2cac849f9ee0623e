"""Operators that launch device work: planted nests, sums that add up, a naive twin on anything and on real traces."""

import io
import itertools
import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.kernels.kernels import OTHER, short_name
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.kernels.operator_launches import (
    NONE,
    OperatorGroup,
    measure_operator_launches,
    merge_operator_launches,
)
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.classes import is_host_annotation
from fleetprof_analyzer.trace.problems import Problems
from harness.reference.naive_events import GPU, OPERATORS, RUNTIME, Row, load, read_rows
from harness.traces.kept_traces import find
from hypothesis import given, settings
from hypothesis import strategies as st

US = 1000
Table = dict[str, tuple[int, int, int, int, int]]


def operator(name: str, start: int, end: int, thread: int = 1, category: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": end - start}


def launch(at: int, correlation: int, thread: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread, "ts": at, "dur": 2,
            "args": {"correlation": correlation}}  # fmt: skip


def kernel(length: int, correlation: int, device: int = 0) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": device, "tid": 7, "ts": 1000, "dur": length,
            "args": {"device": device, "stream": 7, "correlation": correlation}}  # fmt: skip


def measure(data: bytes) -> list[OperatorGroup]:
    trace = read_trace(io.BytesIO(data), "t", Problems())
    return measure_operator_launches(trace, split_devices(trace), find_calls(trace))


def planted(*events: dict[str, Any]) -> Table:
    return table(measure(json.dumps({"traceEvents": events}).encode()))


def table(groups: list[OperatorGroup]) -> Table:
    """name: (calls, own launches, own time, launches, time)."""
    return {g.name: (g.calls, g.own_launches, g.own_device_ns, g.launches, g.device_ns) for g in groups}


def test_own_launches_are_those_of_no_operator_inside() -> None:
    assert planted(
        operator("linear", 0, 100), operator("addmm", 10, 50), operator("addmm", 60, 90),
        launch(5, 1), launch(20, 2), launch(70, 3), launch(200, 4),
        kernel(1, 1), kernel(2, 2), kernel(4, 3), kernel(8, 4),
    ) == {
        NONE: (0, 1, 8 * US, 1, 8 * US),
        "addmm": (2, 2, 6 * US, 2, 6 * US),
        "linear": (1, 1, 1 * US, 3, 7 * US),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("events", "found"),
    [
        # An operator inside one of its own name: the launch counts once for the name.
        ([operator("to", 0, 50), operator("to", 10, 40), launch(20, 1), kernel(3, 1)], {"to": (2, 1, 3, 1, 3)}),
        # A graph launches many rows at once, on two devices.
        ([operator("run", 0, 50), launch(20, 1), kernel(3, 1), kernel(4, 1), kernel(5, 1, device=1)],
         {"run": (1, 3, 12, 3, 12)}),
        # Of equal ranges the later one in the file lies inside.
        ([operator("outer", 0, 50), operator("inner", 0, 50), launch(9, 1), kernel(3, 1)],
         {"outer": (1, 0, 0, 1, 3), "inner": (1, 1, 3, 1, 3)}),
        # Another thread's operator, an annotation, an operator that is over, and one that had no length hold nothing.
        ([operator("a", 0, 50, 2), operator("## forward ##", 0, 50), operator("b", 0, 50, category="user_annotation"),
          operator("c", 0, 20), operator("d", 20, 20), launch(20, 1), kernel(3, 1)], {NONE: (0, 1, 3, 1, 3)}),
        # A row without a launch call belongs to nobody.
        ([operator("a", 0, 50), kernel(3, 1)], {}),
        ([operator("a", 0, 50), launch(20, 1)], {}),
    ],
)  # fmt: skip
def test_planted_nests(events: list[dict[str, Any]], found: Table) -> None:
    wanted = {name: (c, o, own * US, n, t * US) for name, (c, o, own, n, t) in found.items()}
    assert planted(*events) == wanted


def naive(rows: list[Row]) -> Table:
    """Each launch by itself: all operators of its thread that hold it, the one that began last being the innermost."""
    calls: dict[int, Row] = {}
    for row in sorted((r for r in rows if r.category in RUNTIME), key=lambda r: (r.start, r.start - r.end)):
        if row.correlation >= 0:
            calls.setdefault(row.correlation, row)
    work: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row.category in GPU and row.correlation in calls:
            work[row.correlation].append(row.end - row.start)
    threads = defaultdict(list)
    for number, row in enumerate(rows):
        if row.category in OPERATORS and row.end > row.start and not is_host_annotation(row.name):
            threads[row.place].append((row.start, row.start - row.end, number, row))
    for operators in threads.values():
        operators.sort(key=lambda item: item[:3])
    own, every, ran = Counter[str](), Counter[str](), defaultdict(set)
    own_ns, every_ns = Counter[str](), Counter[str]()
    for correlation, lengths in work.items():
        call = calls[correlation]
        holders = [item for item in threads[call.place] if item[0] <= call.start < item[3].end]
        inner = short_name(holders[-1][3].name) if holders else NONE
        own[inner] += len(lengths)
        own_ns[inner] += sum(lengths)
        for name in {short_name(item[3].name) for item in holders} or {NONE}:
            every[name] += len(lengths)
            every_ns[name] += sum(lengths)
        for item in holders:
            ran[short_name(item[3].name)].add(item[2])
    return {name: (len(ran[name]), own[name], own_ns[name], every[name], every_ns[name]) for name in every}


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 20), st.integers(1, 2)), max_size=12),
    st.lists(st.tuples(st.integers(0, 45), st.integers(1, 6), st.integers(1, 2)), max_size=8),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=8),
    st.sampled_from([0, 1 << 60]),
)
def test_a_naive_twin_agrees_on_anything(operators: Any, launches: Any, kernels: Any, apart: int) -> None:
    events = [operator(name, start, start + length, thread) for name, start, length, thread in operators]
    events += [launch(at, correlation, thread) for at, correlation, thread in launches]
    events += [kernel(length, correlation) for length, correlation in kernels]
    # A wide trace: times of all threads do not fit one axis.
    events += [operator("far", apart // US, apart // US + 1)] if apart else []
    document = {"traceEvents": events}
    assert planted(*events) == naive(read_rows(document))


@pytest.mark.parametrize(
    ("file", "least"),
    [("gpu_loop/rank0.json.gz", 2), ("nccl_a100/nccl_data.json.gz", 10),
     ("mi250_amd/mi250_minitoy_train_ROCm6_2_kineto.json.gz", 10),
     ("dlrm_v100_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz", 10)],
)  # fmt: skip
def test_a_naive_twin_agrees_on_real_traces(file: str, least: int) -> None:
    found, truth = table(measure(find(file).read_bytes())), naive(read_rows(load(find(file))))
    assert {name: sums for name, sums in found.items() if name != OTHER} == {
        name: truth[name] for name in found if name != OTHER
    }
    for number in (1, 2):
        assert sum(sums[number] for sums in found.values()) == sum(sums[number] for sums in truth.values())
    assert len(found) > least


def test_operators_of_all_ranks_together() -> None:
    def rank(*groups: tuple[str, int]) -> list[OperatorGroup]:
        return [OperatorGroup(name=name, calls=1, own_launches=1, own_device_ns=ns, launches=2, device_ns=2 * ns)
                for name, ns in groups]  # fmt: skip

    ranks = [rank(("a", 5), ("b", 7)), rank(("a", 6)), rank((OTHER, 100))]
    for order in itertools.permutations(ranks):
        merged = merge_operator_launches(order)
        assert [(o.name, o.own_device_ns, o.device_ns, o.launches, o.ranks) for o in merged] == [
            ("a", 11, 22, 4, 2), ("b", 7, 14, 2, 1), (OTHER, 100, 200, 2, 1),
        ]  # fmt: skip
    many = [rank((f"op{number:03}", 1000 - number)) for number in range(80)]
    merged = merge_operator_launches(many)
    assert (len(merged), merged[0].name, merged[-1].name) == (50, "op000", OTHER)
    assert sum(o.own_device_ns for o in merged) == sum(1000 - number for number in range(80))
