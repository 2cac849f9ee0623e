"""Inputs of operators are read from `Input Dims`, within limits, and nothing strange in it costs the operator."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.reading.columns import vocabulary
from fleetprof_analyzer.reading.columns.vocabulary import LONGEST_INPUTS, InputShapes
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Inputs, Trace


def read(*dimensions: str, category: str = "cpu_op") -> Trace:
    rows = [
        f'{{"ph": "X", "cat": "{category}", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2, '
        f'"args": {{"Input Dims": {text}}}}}'
        for text in dimensions
    ]
    return read_trace(io.BytesIO(f'{{"traceEvents": [{", ".join(rows)}]}}'.encode()), "r0.json", Problems())


def inputs_of(text: str, category: str = "cpu_op") -> Inputs | None:
    trace = read(text, category=category)
    (number,) = trace.rows.shape.tolist()
    return trace.inputs[number] if number >= 0 else None


@pytest.mark.parametrize(("dimensions", "elements"), [
    ([[32, 512], [512, 10]], (32 * 512, 5120)),
    ([[512], [], [512]], (512, 0, 512)),             # the second is no tensor, or has no dimensions
    ([[[4], [5, 6]], []], (34, 0)),                  # a list of tensors, as of aten::cat
    ([[0, 512]], (0,)),
    ([], ()),
    ([[]], (0,)),
    ([[1]] * 9, (1,) * 8),                           # of the first eight
    ([[2**31, 2**30]], (2**61,)),
])  # fmt: skip
def test_elements_of_each_input(dimensions: Any, elements: tuple[int, ...]) -> None:
    found = inputs_of(json.dumps(dimensions))
    assert found is not None
    assert (found.elements, found.text) == (elements, str(dimensions)[:120])


@pytest.mark.parametrize("text", [
    "null", "true", "4", '"[[4]]"', '{"a": [4]}', "[4]", "[[4], 5]", "[[[[4]]]]",       # no list of dimensions
    "[[-1]]", "[[2, -3]]", "[[1.0]]", "[[true]]", "[[null]]", '[["4"]]',                # no sizes
    "[[4611686018427387904]]", "[[2305843009213693952, 2]]", f"[[{'9' * 400}]]",        # beyond 2^62
    "[[[4611686018427387903], [4611686018427387903]]]",
    f"{'[' * 500}4{']' * 500}",
    f"[{', '.join(['[4]'] * 900)}]",                                                    # too long
], ids=lambda text: text[:20])  # fmt: skip
def test_what_is_not_of_the_documented_kind_is_unsaid_and_the_operator_kept(text: str) -> None:
    assert len(read(text).rows) == 1
    assert inputs_of(text) is None


@pytest.mark.parametrize("category", ["user_annotation", "cuda_runtime", "gpu_memcpy"])
def test_operators_alone_say_their_inputs(category: str) -> None:
    assert inputs_of("[[4]]", category) is None


def test_rows_with_the_same_inputs_share_them() -> None:
    trace = read("[[4]]", "[[5]]", "[[4]]")
    assert trace.rows.shape.tolist() == [0, 1, 0]
    assert [one.text for one in trace.inputs] == ["[[4]]", "[[5]]"]


def test_what_is_kept_of_untrusted_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "INPUTS_BYTES", 20_000)
    shapes = InputShapes()
    numbers = [shapes[b"[[%d]]" % number] for number in range(1000)]
    kept = [number for number in numbers if number >= 0]
    assert numbers == [*range(len(kept)), *[-1] * (1000 - len(kept))]
    assert 20 < len(kept) < 50
    assert len(shapes) == len(shapes.found) == len(kept)
    assert shapes[b"[" + b"[4]," * LONGEST_INPUTS + b"[4]]"] == -1
    assert shapes[b"[[3]]"] == 3
