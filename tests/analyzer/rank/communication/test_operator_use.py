"""The time of operators by name, and its meaning of a rank beside its peers."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.operators import compare_work
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse, measure_operators, own_times
from fleetprof_analyzer.trace.trace import Category, Inputs, Rows, Trace, TraceMetadata

NAMES = ["aten::linear", "aten::mm", "Optimizer.step#SGD.step", "aten::add_", "c10d::allreduce_"]


def thread_of(*rows: tuple[str, int, int]) -> tuple[Trace, Rows]:
    """A thread with rows (name, start, end)."""
    count = len(rows)
    nothing = np.full(count, -1, np.int64)
    table = Rows(
        category=np.array([Category.ANNOTATION if "#" in name else Category.OPERATOR for name, _, _ in rows], np.int8),
        name=np.array([NAMES.index(name) for name, _, _ in rows], np.int32), place=np.zeros(count, np.int32),
        start_ns=np.array([start for _, start, _ in rows], np.int64),
        duration_ns=np.array([end - start for _, start, end in rows], np.int64), correlation=nothing,
        shape=nothing.astype(np.int32), collective=nothing.astype(np.int32), detail=nothing,
    )  # fmt: skip
    return Trace("trace.json", TraceMetadata(), table, NAMES, [("1", "1")]), table


def test_own_times_leave_out_what_is_inside() -> None:
    start, end = np.array([0, 10, 20, 40, 100]), np.array([90, 30, 25, 60, 110])
    assert own_times(start, end).tolist() == [90 - 20 - 20, 20 - 5, 5, 20, 10]


def test_operators_by_name_within_the_iterations() -> None:
    trace, thread = thread_of(
        ("aten::mm", 0, 50), ("aten::linear", 100, 180), ("aten::mm", 110, 140), ("aten::mm", 200, 250),
        ("aten::add_", 260, 261), ("Optimizer.step#SGD.step", 300, 400), ("aten::add_", 310, 320),
        ("c10d::allreduce_", 330, 390), ("aten::mm", 400, 500),
    )  # fmt: skip
    found = measure_operators(trace, thread, [(100, 400)])
    assert found == [
        OperatorUse("aten::mm", False, 2, 80, 40),
        OperatorUse("aten::linear", False, 1, 50, 50),
        OperatorUse("aten::add_", True, 1, 10, 10),  # in the optimizer's step: of the parameters
        OperatorUse("aten::add_", False, 1, 1, 1),
    ]


@pytest.mark.parametrize(("shapes", "elements", "inputs"), [
    ([0, 0, 1], (20, 5), "[[40], [5]]"),
    ([0, 0, -1], (), ""),                        # less than nine in ten say theirs
    ([0] * 9 + [-1], (10, 5), "[[10], [5]]"),
    ([0, 0, 0, 2], (7, 3), "[[10], [5]]"),       # with fewer inputs
    ([-1], (), ""),
    ([3, 3], (2**61,), "[[2305843009213693952]]"),
])  # fmt: skip
def test_what_operators_were_given(shapes: list[int], elements: tuple[int, ...], inputs: str) -> None:
    trace, thread = thread_of(*(("aten::mm", 10 * at, 10 * at + 5) for at in range(len(shapes))))
    given = [((10, 5), "[[10], [5]]"), ((40, 5), "[[40], [5]]"), ((), "[]"), ((2**61,), f"[[{2**61}]]")]
    trace = replace(trace, inputs=[Inputs(*one) for one in given])
    thread = replace(thread, shape=np.array(shapes, np.int32))
    (found,) = measure_operators(trace, thread, [(0, 1000)])
    assert (found.elements, found.inputs) == (elements, inputs)


def test_no_iterations_no_operators() -> None:
    assert measure_operators(*thread_of(("aten::mm", 0, 50)), []) == []


BATCH, STEP = ("mm", "addmm", "softmax", "layer_norm"), ("mul_", "lerp_")


def uses(batch: float = 1.0, step: float = 1.0, calls: int = 100, **more: int) -> list[OperatorUse]:
    """Operators of the batch that take 100 µs and of the parameters that take 2, times these; `more`: further calls."""
    found = [OperatorUse(name, False, calls, 0, round(100_000 * batch)) for name in BATCH]
    found += [OperatorUse(name, True, 200, 0, round(2000 * step)) for name in STEP]
    return found + [OperatorUse(name, False, count, 0, 5000) for name, count in more.items()]


@pytest.mark.parametrize(("mine", "is_more"), [
    (uses(), False),
    (uses(batch=3.6), True),
    (uses(batch=3.6, step=3.4), False),  # all of them take longer: the core is slow
    (uses(batch=1.15), False),
    (uses(batch=3.6, calls=300), False),  # not the same operators
    (uses(item=500), False),
])  # fmt: skip
def test_more_work_is_told_from_a_slow_core_and_from_more_operators(mine: list[OperatorUse], is_more: bool) -> None:
    work = compare_work(mine, [uses(), uses(batch=1.1), uses(batch=0.9)], 1)
    assert work is not None
    assert work.is_more == is_more


@pytest.mark.parametrize(("mine", "peers"), [([], [uses()]), (uses(), []), (uses(), [[]])])
def test_without_operators_there_is_nothing_to_compare(mine: list[OperatorUse], peers: list[list[OperatorUse]]) -> None:
    assert compare_work(mine, peers, 1) is None
