"""An event's words about its collective are read, and nothing that is strange in it costs the event."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Category, Collective, Trace


def read(*events: dict[str, Any]) -> Trace:
    text = json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, **e} for e in events]})
    return read_trace(io.BytesIO(text.encode()), "r0.json", Problems())


def collective_of(name: str, category: str, **args: Any) -> Collective | None:
    trace = read({"name": name, "cat": category, "args": args})
    (index,) = trace.rows.collective.tolist()
    return None if index < 0 else trace.collectives[index]


NCCL = {
    "Collective name": "allreduce", "In msg nelems": 6637568, "Out msg nelems": 6637568, "Group size": 2,
    "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 17,
}  # fmt: skip


def test_a_nccl_kernel_says_its_collective() -> None:
    assert collective_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", **NCCL) == Collective(
        name="allreduce", group_name="0", group_ranks="[0, 1]", group_size=2, elements_in=6637568,
        elements_out=6637568, data_type="float", sequence=17,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dimensions", "elements"),
    [
        ([[66048]], 66048),
        ([[2, 3], [4]], 10),
        ([[[2, 3], [4]], [], [6]], 16),
        ([[4], "x"], None),
        ([[-4, -2]], None),
        ([[], []], None),
        ("[[4]]", None),
    ],
)
def test_a_gloo_range_says_its_tensors(dimensions: Any, elements: int | None) -> None:
    found = collective_of("gloo:all_reduce", "user_annotation", **{"Input Dims": dimensions})
    assert found == Collective(elements_in=elements)


@pytest.mark.parametrize("strange", [None, True, -1, 1.5, [], {}, "x", 10**30])
def test_a_strange_value_is_unsaid_and_the_rest_is_kept(strange: Any) -> None:
    found = collective_of("ncclKernel", "kernel", **{**NCCL, "Seq": strange, "Group size": strange})
    assert found is not None
    assert (found.sequence, found.group_size, found.elements_in) == (None, None, 6637568)


def test_launches_are_joined_by_correlation_and_kernels_keep_their_shape() -> None:
    trace = read(
        {"name": "cudaLaunchKernel", "cat": "cuda_runtime", "args": {"correlation": 5}},
        {"name": "gemm", "cat": "kernel", "args": {"correlation": 5, "grid": [8, 1, 1], "block": [64, 1, 1]}},
        {"name": "aten::mm", "cat": "cpu_op", "args": {"correlation": "odd"}},
    )
    assert trace.rows.category.tolist() == [Category.RUNTIME, Category.KERNEL, Category.OPERATOR]
    assert trace.rows.correlation.tolist() == [5, 5, -1]
    assert trace.rows.shape.tolist() == [-1, 0, -1]
    assert trace.shapes == [(b"[8, 1, 1]", b"[64, 1, 1]")]


def test_of_python_frames_only_the_garbage_collector_is_kept() -> None:
    frames = ["<built-in function collect>", "gc.collect", "train.py(3): forward", "egc.py(1): f"]
    trace = read(*({"name": name, "cat": "python_function"} for name in frames))
    assert trace.names == frames[:2]
    assert set(trace.rows.category.tolist()) == {Category.COLLECTION}
