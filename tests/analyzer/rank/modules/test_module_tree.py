"""Operators belong to modules by the marks of one iteration, which no other measure sees."""

import io
from typing import Any

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.modules.amounts import AMOUNTS, HOST
from fleetprof_analyzer.rank.modules.assignment import ModulePath
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.rank.modules.tree import choose_paths, measure_modules
from fleetprof_analyzer.rank.summary import RankSummary, summarise
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.module_tree import MOST_NODES, HeldBytes, ModuleNode, ModuleTree
from fleetprof_api.samples import ModuleColumns, RankSamples
from harness.traces.planted.module_rows import call, kernel, marks, module, node, op, step, text_of

ITERATION = 1000


def tree_of(*rows: dict[str, Any], end: float | None = 900, columns: ModuleColumns | None = None) -> ModuleTree:
    every = [*marks(0, end), step(end - 5, end + 5) if end else step(890, 900), *rows]
    trace = read_trace(io.BytesIO(text_of(every)), "t", Problems())
    _, marked = part_marked(trace)
    tree = measure_modules(marked, None if columns is None else RankSamples(rank=0, modules=columns))
    assert tree is not None
    return tree


def host_of(node: ModuleNode) -> tuple[float, float, float, float]:
    """Forward, backward, recomputation, all that is its own; µs."""
    forward, backward, recompute = (one.host_ns / 1000 for one in (node.forward, node.backward, node.recompute))
    return forward, backward, recompute, node.own.host_ns / 1000


FORWARD = [
    module("Net", 10, 100), op("aten::embedding", 12, 20, 1),
    module("Net.a", 20, 60), op("aten::linear", 22, 50, 2), op("aten::addmm", 25, 45, 3),
    module("Net.b", 60, 95), op("aten::relu", 62, 72, 4), op("aten::gt", 80, 90, 5),
    op("aten::mean", 110, 120, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("backward", "expected"),
    [
        ([], {"Net": (56, 0, 0, 8), "Net.a": (28, 0, 0, 28), "Net.b": (20, 0, 0, 20)}),
        # A node belongs to the last operator that had its number; what it calls belongs to it.
        (
            [node("AddmmBackward0", 200, 240, 3), op("aten::mm", 205, 235)],
            {"Net": (56, 40, 0, 8), "Net.a": (28, 40, 0, 68)},
        ),
        ([node("MeanBackward0", 200, 240, 5)], {"Net": (56, 0, 0, 8), "Net.b": (20, 0, 0, 20)}),
        # On a thread of its own, and with hooks: the number stands in the row inside.
        (
            [node("ReluBackward0", 200, 240, None, thread=2), op("ReluBackward0", 210, 230, 4, thread=2)],
            {"Net": (56, 40, 0, 8), "Net.b": (20, 40, 0, 60)},
        ),
        # What accumulates belongs to the node before it on its thread; collectives belong to no module.
        (
            [
                node("AddmmBackward0", 200, 240, 3), node("torch::autograd::AccumulateGrad", 240, 260),
                op("c10d::allreduce_", 245, 255), op("gloo:all_reduce", 246, 254),
            ],
            {"Net": (56, 50, 0, 8), "Net.a": (28, 50, 0, 78)},
        ),
        # Computed again: named so, on the path that it had.
        (
            [node("AddmmBackward0", 200, 300, 3), module("Net.a", 210, 260), op("aten::linear", 215, 255, 7)],
            {"Net": (56, 50, 40, 8), "Net.a": (28, 50, 40, 118)},
        ),
        # A graph from before the marks: nobody knows its modules.
        ([node("AddmmBackward0", 200, 240, 77)], {"Net": (56, 0, 0, 8)}),
    ],
    ids=["forward", "backward", "no module", "hooks", "accumulated", "again", "unknown"],
)  # fmt: skip
def test_operators_belong_to_the_module_that_called_them(
    backward: list[dict[str, Any]], expected: dict[str, tuple[float, ...]]
) -> None:
    tree = tree_of(*FORWARD, *backward)
    found = {node.name: host_of(node) for node in tree.nodes}
    assert {name: found[name] for name in expected} == expected
    assert [node.name for node in tree.nodes] == ["Net", "Net.a", "Net.b"]
    assert [node.depth for node in tree.nodes] == [0, 1, 1]
    assert sum(node.own.host_ns for node in tree.nodes) == tree.in_modules.host_ns
    rest = tree.whole.host_ns - tree.in_modules.host_ns - tree.unassigned_backward.host_ns - tree.communication.host_ns
    assert rest == 10_000  # the loss


def test_what_two_threads_could_have_made_belongs_to_none() -> None:
    rows = [module("Net", 10, 50), op("aten::mm", 20, 30, 3), module("Net", 10, 50, thread=2, number=1)]
    other = [module("Net.a", 12, 40, thread=2), op("aten::mm", 20, 30, 3, thread=2)]
    tree = tree_of(*rows, *other, node("MmBackward0", 100, 140, 3))
    assert tree.unassigned_backward.host_ns == 40_000
    assert all(node.backward.host_ns == 0 for node in tree.nodes)


def test_a_module_is_one_node_per_way_to_it() -> None:
    rows = [module("Net", 0, 90), module("Net.l", 10, 40), module("Net.s", 10, 20), module("Net.s", 50, 70)]
    tree = tree_of(*rows, op("aten::mm", 12, 15), op("aten::mm", 52, 60))
    assert [(node.name, node.depth, node.forward.host_ns, node.calls) for node in tree.nodes] == [
        ("Net", 0, 11_000, 1), ("Net.l", 1, 3_000, 1), ("Net.s", 2, 3_000, 1), ("Net.s", 1, 8_000, 1),
    ]  # fmt: skip


def test_device_work_goes_with_the_call_that_launched_it() -> None:
    rows = [module("Net", 10, 50), op("aten::mm", 20, 30, 3), call(22, 5), node("MmBackward0", 60, 90, 3), call(70, 6)]
    tree = tree_of(*rows, kernel(100, 140, 5), kernel(200, 207, 6), kernel(300, 301, 77))
    (net,) = tree.nodes
    assert (net.forward.device_ns, net.forward.launches) == (40_000, 1)
    assert (net.backward.device_ns, net.backward.launches) == (7_000, 1)
    assert (tree.whole.device_ns, tree.in_modules.device_ns) == (48_000, 47_000)


def test_what_the_agent_said_stands_at_its_module() -> None:
    columns = ModuleColumns(
        name=["Net.a", "Net.gone"], class_name=["Linear", "X"], file=["/t.py", ""], line=[7, 0],
        call_file=["/t.py", ""], call_line=[9, 0], calls=[4, 1], parameter_bytes=[64, None], output_bytes=[None, 1],
    )  # fmt: skip
    _, inner, _ = tree_of(*FORWARD, columns=columns).nodes
    assert (inner.class_name, inner.file, inner.line, inner.call_line) == ("Linear", "/t.py", 7, 9)
    assert (inner.parameter_bytes, inner.output_bytes, inner.calls) == (64, None, 1)


def test_what_modules_hold_is_added_up_and_the_batch_is_that_of_the_root() -> None:
    columns = ModuleColumns(
        name=["Net", "Net.a", "Net.words", "Net.places", "Loss"], class_name=[""] * 5, file=[""] * 5, line=[0] * 5,
        call_file=[""] * 5, call_line=[0] * 5, calls=[1, 1, 1, 1, 0], parameter_bytes=[0, 64, 100, 10, 4],
        gradient_bytes=[0, 64, 100, None, 4], optimizer_bytes=[0, 128, 200, 20, 8], saved_bytes=[1, 2, 3, 4, 5],
        rows=[8, None, None, None, 99], indices=[None, None, 40, 5, None],
    )  # fmt: skip
    tree = tree_of(*FORWARD, columns=columns)
    assert tree.held == HeldBytes(parameter_bytes=178, gradient_bytes=None, optimizer_bytes=356, saved_bytes=15)
    assert (tree.rows, tree.rows_of, tree.indices, tree.indices_of) == (8, "Net", 40, "Net.words")
    _, inner, _ = tree.nodes
    assert (inner.gradient_bytes, inner.optimizer_bytes, inner.saved_bytes) == (64, 128, 2)
    assert tree_of(*FORWARD).held == HeldBytes()


def test_the_modules_with_the_most_time_are_kept() -> None:
    rows = [module("Net", 0, 99_000)]
    for number in range(300):
        at = 300 * number
        rows += [module(f"Net.{number}", at, at + 300), op("aten::mm", at, at + number + 1)]
    tree = tree_of(*rows, end=None)
    assert tree.left_out == 45
    assert [node.name for node in tree.nodes] == ["Net", *(f"Net.{number}" for number in range(45, 300))]


@pytest.mark.parametrize(("end", "ended_early"), [(900, False), (None, False), (400, True)])
def test_marks_that_a_compilation_ended_are_said(end: float | None, ended_early: bool) -> None:
    every = [*marks(0, end), step(890, 910), *FORWARD, op("aten::mul", 500, 520)]
    _, marked = part_marked(read_trace(io.BytesIO(text_of(every)), "t", Problems()))
    tree = measure_modules(marked, None)
    assert tree is not None
    assert tree.ended_early is ended_early
    assert tree.whole.host_ns == (66_000 if ended_early else 86_000)


def iterations(count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(count):
        at = number * ITERATION + 3
        rows += [op("aten::mm", at, at + 400, 10 * number), call(at + 10, number), kernel(at + 300, at + 1100, number)]
        rows.append(step(at + ITERATION - 60, at + ITERATION))
    return rows


@pytest.mark.parametrize("accelerated", [True, False])
def test_no_other_measure_sees_the_marked_iteration(accelerated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the recording had ended before it, whoever reads the file."""
    if not accelerated:
        monkeypatch.setattr(scanning, "make_scanner", lambda *_: None)
        monkeypatch.setattr("fleetprof_analyzer.reading.reader.make_scanner", lambda *_: None)
    begin = 3 * ITERATION + 2
    more = [*marks(begin, begin + 1002), module("Net", begin + 10, begin + 90), op("aten::mm", begin + 20, begin + 80)]
    more += [call(begin + 22, 50), kernel(begin + 700, begin + 900, 50), step(begin + 950, begin + 1010)]
    *before, last = iterations(3)
    # The step that goes on is cut, as the end of a recording cuts it: our work is in the rest of it.
    plain, marked = (_summarise(rows) for rows in ([*before, {**last, "dur": 59}], [*before, last, *more]))
    assert marked.modules is not None
    assert [node.name for node in marked.modules.nodes] == ["Net"]
    assert marked.modules.iteration_ns == 1_002_000
    assert _measures(marked) == _measures(plain)
    assert plain.rank is not None
    assert len(plain.rank.iterations) == 3


def _summarise(rows: list[dict[str, Any]]) -> RankSummary:
    problems = Problems()
    trace = read_trace(io.BytesIO(text_of(rows)), "t", problems)
    return summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=problems)


def _measures(summary: RankSummary) -> RankSummary:
    """Without the size of the file."""
    assert summary.rank is not None
    rank = msgspec.structs.replace(summary.rank, event_count=0, trace_bytes=0)
    return msgspec.structs.replace(summary, rank=rank, modules=None)


def test_a_marked_iteration_alone_is_said_to_hold_nothing_measured() -> None:
    trace = read_trace(io.BytesIO(text_of([*marks(0, 900), *FORWARD])), "t", Problems())
    found = summarise(trace, None, rank_number=3, terms=RecordingTerms(), problems=Problems())
    assert found.rank is None
    assert [(one.kind, one.message) for one in found.problems] == [
        ("no_events", "it holds the iteration that marks modules alone, which is not measured")
    ]


def test_a_module_that_is_kept_stands_in_all_that_are_around_it() -> None:
    # The median of the outer one is of an iteration in which the inner one did little.
    paths = [ModulePath(NOWHERE, "Net"), ModulePath(0, "Net.a"), *(ModulePath(NOWHERE, str(at)) for at in range(300))]
    whole = np.zeros((len(paths), 3, AMOUNTS), np.int64)
    whole[:, 0, HOST] = [1, 90, *(50 for _ in range(300))]
    kept = choose_paths(paths, whole)
    assert {0, 1} <= kept
    assert len(kept) == MOST_NODES
