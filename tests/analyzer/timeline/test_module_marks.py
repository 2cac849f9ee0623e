"""Modules have a track of their own on each thread of the marked iteration: their calls, and their part of backward."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.timeline.events.marks import Span
from fleetprof_analyzer.timeline.events.module_marks import choose_module, find_longest, mark_modules
from fleetprof_analyzer.trace.problems import Problems

BASE = 1_790_857_026_000_000
NODE = "autograd::engine::evaluate_function: "


def op(name: str, begin: float, end: float, number: int | None = None, thread: int = 1) -> dict[str, Any]:
    args = {} if number is None else {"Sequence number": number}
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": thread, "ts": BASE + begin, "dur": end - begin}
    return {**event, "args": args}


ROWS = [
    op("fleetprof.marks begin", 0, 0), op("fleetprof.module:0 Net", 10, 90), op("fleetprof.module:1 Net.a", 20, 40),
    op("aten::mm", 21, 30, 1), op("fleetprof.module:2 Net.b", 50, 60), op("aten::mm", 51, 55, 2),
    op(NODE + "MmBackward0", 100, 120, 2, 7), op(NODE + "torch::autograd::AccumulateGrad", 121, 125, None, 7),
    op(NODE + "MmBackward0", 130, 170, 1, 7), op("fleetprof.module:1 Net.a", 140, 150, None, 7),
    op(NODE + "MmBackward0", 180, 190, 77, 7), op("fleetprof.marks end", 300, 300),
]  # fmt: skip


def marks_of(rows: list[dict[str, Any]], span: Span = (0, 1000)) -> list[tuple[Any, ...]]:
    text = json.dumps({"traceEvents": rows}, indent=1).encode()
    trace = read_trace(io.BytesIO(text), "t", Problems())
    begin, end = ((BASE + at) * 1000 for at in span)
    return [
        (mark.track, mark.name, mark.start_ns // 1000 - BASE, mark.duration_ns // 1000, mark.args.get("phase"))
        for mark in mark_modules(trace, (begin, end))
    ]


def test_calls_and_backward_are_drawn() -> None:
    forward, backward = "modules (thread 1)", "modules (thread 7)"
    assert marks_of(ROWS) == [
        (forward, "Net", 10, 80, None), (forward, "Net.a", 20, 20, None), (forward, "Net.b", 50, 10, None),
        (backward, "Net.b", 100, 25, "backward"), (backward, "Net.a", 130, 40, "backward"),
        (backward, "Net.a", 140, 10, "again in backward"),
    ]  # fmt: skip


def test_only_what_reaches_into_the_window() -> None:
    assert [mark[1:3] for mark in marks_of(ROWS, (0, 30))] == [("Net", 10), ("Net.a", 20)]
    assert marks_of([op("aten::mm", 0, 9)]) == []


@pytest.mark.parametrize(
    ("name", "backward", "part"),
    [
        ("Net.a", False, (20, 40)), ("Net", False, (10, 90)), ("b", False, (50, 60)), ("a", True, (130, 170)),
        ("Net.b", True, (100, 125)), ("et.a", False, None), ("c", False, None), ("Net", True, None),
    ],
)  # fmt: skip
def test_the_longest_part_of_a_module(name: str, backward: bool, part: Span | None) -> None:
    spans = find_longest(
        read_trace(io.BytesIO(json.dumps({"traceEvents": ROWS}).encode()), "t", Problems()), backward=backward
    )
    chosen = choose_module(name, spans)
    found = None if chosen is None else tuple(at // 1000 - BASE for at in spans[chosen])
    assert found == part


def test_the_end_of_two_names_is_none() -> None:
    assert choose_module("mlp", ["Net.0.mlp", "Net.1.mlp"]) is None
    assert choose_module("mlp", ["mlp", "Net.1.mlp"]) == "mlp"
