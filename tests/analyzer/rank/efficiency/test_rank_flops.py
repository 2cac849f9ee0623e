"""A rank's floating-point operations are means over its whole iterations; nothing counts twice."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.rank.efficiency.rank_flops import measure_flops
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.efficiency import OperatorAmounts, RankFlops, TypeFlops
from fleetprof_api.report.report import Iteration

BASE = 1_790_857_026_000_000
PRODUCT = [[3, 4], [4, 5]]


def op(name: str, begin: float, end: float, dimensions: Any, data_type: str = "float", **more: Any) -> dict[str, Any]:
    args = {"Input Dims": dimensions, "Input type": [data_type] * len(dimensions)}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 1, "ts": BASE + begin, "dur": end - begin,
            "args": {**args, **more}}  # fmt: skip


def row(category: str, name: str, begin: float) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 1, "ts": BASE + begin, "dur": 1, "args": {}}


def count(rows: list[dict[str, Any]], **more: Any) -> RankFlops | None:
    text = json.dumps({"traceEvents": rows}, indent=1).encode()
    trace = read_trace(io.BytesIO(text), "t", Problems())
    spans = [(100, 200, True), (200, 300, None), (300, 350, False)]
    iterations = [
        Iteration(index=at, start_ns=(BASE + begin) * 1000, duration_ns=(end - begin) * 1000, complete=whole)
        for at, (begin, end, whole) in enumerate(spans)
    ]
    return measure_flops(trace, more.get("iterations", iterations))


ROWS = [
    op("aten::mm", 50, 60, PRODUCT),  # before the first iteration
    op("aten::linear", 110, 150, [[3, 4], [5, 4]]),
    op("aten::mm", 120, 140, PRODUCT, "c10::BFloat16"),
    op("aten::mm", 150, 160, PRODUCT, "c10::BFloat16"),
    op("aten::relu", 160, 170, [[3, 4]]),
    op("aten::mm", 210, 230, PRODUCT),
    op("aten::mm", 310, 320, PRODUCT),  # in the iteration that is cut
]


@pytest.mark.parametrize("accelerated", [True, False])
def test_operations_of_whole_iterations(accelerated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator inside a counted one counts nothing, and says the data type: autocast changes it on the way."""
    if not accelerated:
        monkeypatch.setattr("fleetprof_analyzer.reading.reader.make_scanner", lambda *_: None)
    elif scanning.accelerator() is None:
        pytest.skip("fleetprof-accelerator is not installed")
    assert count(ROWS) == RankFlops(
        flops=180,
        by_type=[TypeFlops(data_type="bfloat16", flops=120), TypeFlops(data_type="float32", flops=60)],
        iteration_ns=100_000,
        # Means of two iterations; of `linear` the product inside counts, and nothing twice.
        operators=[
            OperatorAmounts(name="aten::mm", calls=2, flops=180, moved_bytes=(2 * 94 + 188) // 2, work_ns=25_000),
            OperatorAmounts(name="aten::relu", moved_bytes=48, work_ns=5_000),
        ],
    )


def test_what_a_checkpoint_stopped_counts_nothing() -> None:
    """It runs again within backward until the last tensor is there: inside an operator, before that computes."""
    node = op("autograd::engine::evaluate_function: CheckpointBackward", 110, 190, [])
    again = [op("aten::mm", 120 + at, 124 + at, PRODUCT) for at in (0, 10)]
    for one in again:
        one["args"]["Sequence number"] = 9
    inside = [op("aten::resolve_conj", 121, 122, [[3, 4]]), op("aten::detach", 131, 132, [[3, 4]])]
    backward = op("aten::mm", 150, 160, PRODUCT)  # of backward: without a number, whatever is inside
    found = count([node, *again, *inside, backward])
    assert found is not None
    assert found.flops == 120  # twice 120 in two iterations
    assert count([*again, *inside, backward]) == RankFlops(
        flops=180, by_type=[TypeFlops(data_type="float32", flops=180)], iteration_ns=100_000,
        operators=[OperatorAmounts(name="aten::mm", calls=2, flops=180, moved_bytes=282, work_ns=9_000)],
    )  # fmt: skip


def test_without_shapes_or_whole_iterations_nothing_is_said() -> None:
    assert count([row("cpu_op", "aten::mm", 120)]) is None
    assert count(ROWS, iterations=[]) is None


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (row("cuda_runtime", "cudaGraphLaunch", 120), {"hidden": ["graphs"]}),
        (row("kernel", "triton_tem_fused_mm_0", 120), {"hidden": ["fused"]}),
        (row("kernel", "cutlass_80_tensorop_s1688gemm_128x128", 120), {"single_precision": "tfloat32"}),
        (op("aten::mm", 170, 180, [[3, 4], []]), {"unknown_operators": 0}),
        (op("aten::mm", 170, 180, PRODUCT, "me::Type"), {"by_type": ["bfloat16", "float32", "me::Type"]}),
    ],
    ids=["graphs", "fused", "tf32", "unknown", "other type"],
)
def test_what_shapes_do_not_tell_is_named(more: dict[str, Any], expected: dict[str, Any]) -> None:
    found = count([*ROWS, more])
    assert found is not None
    by_type = [one.data_type for one in found.by_type]
    assert {name: by_type if name == "by_type" else getattr(found, name) for name in expected} == expected


def test_operators_whose_shapes_are_not_told_are_counted() -> None:
    found = count([*ROWS, *(op("aten::mm", 170 + at, 171 + at, [[3, 4], []]) for at in range(4))])
    assert found is not None
    assert (found.flops, found.unknown_operators) == (180, 2)
