"""Measured iterations, which have no marks, are assigned by aligning their operations with those of the marked one."""

import io
from typing import Any

import pytest
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.tree import measure_modules
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.findings import Example
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import ModuleColumns, RankSamples
from harness.traces.planted.module_rows import BASE, call, kernel, marks, module, node, op, text_of

LAYER = ("norm", "linear", "gelu", "mul", "linear")
LENGTH = 10_000  # µs of an iteration


class Loop:
    """Iterations of `Net`: a stem, layers `Net.0` to `Net.3`, a head, then backward in the opposite order."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._number = self._iterations = 0

    def iterate(self, layers: str = "0123", *, more: str = "", slow: float = 1, is_marked: bool = False) -> None:
        """`layers` that are called; `more`: an operator behind layer 1; `slow`: each operator takes so much longer."""
        begin = now = self._iterations * LENGTH
        self._iterations += 1
        self.rows += marks(begin, begin + LENGTH - 1) if is_marked else []
        rows: list[dict[str, Any]] = []
        made: list[int] = []

        def run(names: tuple[str, ...], own: float) -> None:
            nonlocal now
            for name in names:
                self._number += 1
                made.append(self._number)
                rows.append(op(f"aten::{name}", now, now + own * slow, self._number))
                now += int(own * slow) + 2

        def enter(name: str, names: tuple[str, ...], own: float) -> None:
            start = now - 1
            run(names, own)
            rows.extend([module(name, start, now)] if is_marked else [])

        run(("randn",), 5)
        entered = now - 1
        enter("Net.stem", ("embedding", "view", "dropout", "add"), 10)
        for layer in layers:
            enter(f"Net.{layer}", LAYER, 20 + int(layer))
            if more and layer == "1":
                run((more,), 7)
        enter("Net.head", ("layer_norm", "t", "matmul", "softmax"), 30)
        rows.extend([module("Net", entered, now)] if is_marked else [])
        run(("mean",), 5)
        for number in reversed(made):
            rows.append(node("Backward0", now, now + 10 * slow, number))
            now += int(10 * slow) + 2
        self.rows += rows

    def tree(self, *, uncalled: str = "", says: bool = True) -> ModuleTree:
        trace = read_trace(io.BytesIO(text_of(self.rows)), "t", Problems())
        measured, marked = part_marked(trace)
        count = self._iterations - 1
        iterations = [
            Iteration(index=number, start_ns=(BASE + number * LENGTH) * 1000, duration_ns=LENGTH * 1000)
            for number in range(count)
        ]
        names = ["Net", "Net.stem", *(f"Net.{layer}" for layer in range(4)), "Net.head"]
        size = len(names)
        columns = ModuleColumns(
            name=names, class_name=["Net", "Stem", *["Layer"] * 4, "Head"], file=[""] * size, line=[0] * size,
            call_file=[""] * size, call_line=[0] * size, calls=[int(name[-1] not in uncalled) for name in names],
            parameter_bytes=[8] * size, output_bytes=[None] * size,
        )  # fmt: skip
        tree = measure_modules(
            marked, RankSamples(rank=0, modules=columns if says else ModuleColumns()), measured, iterations
        )
        assert tree is not None
        return tree


def figures_of(tree: ModuleTree) -> dict[str, tuple[int, float, float]]:
    """By module: iterations behind its figures, forward and backward µs."""
    return {
        one.name: (one.measured_iterations, one.forward.host_ns / 1000, one.backward.host_ns / 1000)
        for one in tree.nodes
    }


def test_figures_are_medians_over_measured_iterations() -> None:
    loop = Loop()
    for slow in (1, 3, 1):
        loop.iterate(slow=slow)
    loop.iterate(slow=2, is_marked=True)
    tree = loop.tree()
    assert (tree.measured_iterations, tree.iteration_ns) == (3, LENGTH * 1000)
    assert figures_of(tree) == {
        "Net": (3, 40 + 5 * (20 + 21 + 22 + 23) + 120, 280),
        "Net.stem": (3, 40, 40),
        **{f"Net.{layer}": (3, 5 * (20 + layer), 50) for layer in range(4)},
        "Net.head": (3, 120, 40),
    }
    assert tree.unmatched.host_ns == 0
    stem = tree.nodes[1]
    assert stem.example == Example(rank=0, start_ns=(BASE + 2 * LENGTH + 7) * 1000, duration_ns=46_000)
    assert tree.whole.host_ns - tree.in_modules.host_ns == (5 + 5 + 20) * 1000  # the batch, the loss


def test_an_operator_more_is_in_the_module_around_it_and_counted() -> None:
    loop = Loop()
    for _ in range(3):
        loop.iterate(more="isnan")
    loop.iterate(is_marked=True)
    tree = loop.tree()
    assert tree.unmatched.host_ns == (7 + 10) * 1000
    modules = figures_of(tree)
    # It is in Net, in its layer 1 or behind it.
    assert modules["Net"] == (3, 590 + 7, 280 + 10)
    assert {name for name, (count, *_) in modules.items() if not count} == {"Net.1", "Net.2"}


@pytest.mark.parametrize(
    ("iterations", "marked", "uncalled", "beside"),
    [
        (("0123", "013", "0123"), "0123", "", 3),
        # What is more than in the marked one may begin in the stem, or end in the head.
        (("0123", "0123"), "023", "1", 0),
        # As many as in the marked one, but others: that the agent saw a layer without a call tells.
        (("012", "013"), "023", "1", 2),
        (("023",), "023", "1", 1),
    ],
)  # fmt: skip
def test_of_layers_that_chance_leaves_out_none_is_told(
    iterations: tuple[str, ...], marked: str, uncalled: str, beside: int
) -> None:
    loop = Loop()
    for layers in iterations:
        loop.iterate(layers)
    loop.iterate(marked, is_marked=True)
    tree = loop.tree(uncalled=uncalled)
    modules = figures_of(tree)
    varying = {name: modules[name] for name in modules if name[-1].isdigit()}
    # The marked iteration's own.
    assert varying == {f"Net.{layer}": (0, 5 * (20 + int(layer)), 50) for layer in marked}
    count = len(iterations)
    assert (modules["Net"][0], modules["Net.stem"], modules["Net.head"]) == (count, (beside, 40, 40), (beside, 120, 40))
    assert tree.unmatched.host_ns > 0


def test_without_the_agents_word_the_marked_iteration_alone_is_told() -> None:
    loop = Loop()
    loop.iterate()
    loop.iterate(is_marked=True)
    tree = loop.tree(says=False)
    assert tree.measured_iterations == 0
    assert all(one.measured_iterations == 0 for one in tree.nodes)


def test_device_work_goes_with_the_call_inside_the_operator() -> None:
    loop = Loop()
    for number in range(3):
        loop.iterate(is_marked=number == 2)
        at = number * LENGTH + 7
        loop.rows += [call(at + 1, 100 + number), kernel(at + 50, at + 90 + number, 100 + number)]
    stem: ModuleNode = next(one for one in loop.tree().nodes if one.name == "Net.stem")
    assert (stem.forward.device_ns, stem.forward.launches) == (40_500, 1)
