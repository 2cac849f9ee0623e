"""Floating-point operations follow from shapes, as PyTorch counts them; what shapes do not tell is not guessed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.rank.efficiency.formulas import FORMULAS, count_flops
from fleetprof_analyzer.trace.trace import Inputs

ROOT = Path(__file__).parents[4]
CONVOLUTION = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
BACKWARD = ["", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[False, True, True]"]
HEADS = [[2, 4, 8, 16], [2, 4, 6, 16], [2, 4, 6, 32]]
LENGTHS = [[2, 8, 4, 16], [2, 6, 4, 16], [2, 6, 4, 32]]


def inputs(dimensions: Any, values: Any = None) -> Inputs:
    return Inputs((), "", json.dumps(dimensions).encode(), b"", b"" if values is None else json.dumps(values).encode())


@pytest.mark.parametrize(
    ("name", "dimensions", "values", "flops"),
    [
        ("aten::mm", [[3, 4], [4, 5]], None, 2 * 3 * 4 * 5),
        ("aten::bmm", [[7, 3, 4], [7, 4, 5]], None, 2 * 7 * 3 * 4 * 5),
        ("aten::mv", [[3, 4], [4]], None, 2 * 3 * 4),
        ("aten::dot", [[4], [4]], None, 8),
        ("aten::addmm", [[5], [3, 4], [4, 5], [], []], None, 120),
        ("aten::addmm_", [[3, 5], [3, 4], [4, 5]], None, 120),
        ("aten::_scaled_mm", [[3, 4], [4, 5], [], []], None, 120),
        ("aten::linear", [[2, 3, 4], [5, 4], [5]], None, 240),
        ("aten::_grouped_mm", [[6, 4], [2, 4, 5], [2]], None, 2 * 6 * 4 * 5),
        ("aten::_grouped_mm", [[2, 3, 4], [2, 4, 5]], None, 2 * 2 * 3 * 4 * 5),
        ("aten::_grouped_mm", [[2, 3, 4], [4, 10], [2]], None, 2 * 3 * 4 * 10),
        ("aten::_grouped_mm", [[3, 8], [8, 5], [2]], None, 2 * 3 * 8 * 5),
        ("aten::convolution", [[2, 3, 16, 16], [8, 3, 3, 3], [8]], CONVOLUTION, 2 * 2 * 8 * 8 * 8 * 3 * 9),
        ("aten::convolution_backward", [[2, 8, 8, 8], [2, 3, 16, 16], [8, 3, 3, 3]], BACKWARD, 2 * 2 * 64 * 8 * 3 * 9),
        ("aten::_scaled_dot_product_flash_attention", HEADS, None, 2 * 2 * 4 * 8 * 6 * (16 + 32)),
        ("aten::_scaled_dot_product_cudnn_attention_backward", [HEADS[0], *HEADS], None, 768 * (3 * 16 + 2 * 32)),
        ("flash_attn::_flash_attn_forward", LENGTHS, None, 768 * (16 + 32)),
        ("aten::lstm", [[5, 2, 8], [[1, 2, 4]], [[16, 8], [16, 4], [16], [16]]], None, 2 * 10 * (128 + 64)),
        ("aten::gru", [[5, 2, 8], [1, 2, 4], [[12, 8], [12, 4], [12], [12]]], None, 2 * 10 * (96 + 48)),
        ("aten::_cudnn_rnn_backward", [[5, 2, 8], [[16, 8], [16, 4], [16]]], None, 4 * 10 * (128 + 64)),
        # What the shapes do not tell.
        ("aten::mm", [[3, 4], [5, 6]], None, None),
        ("aten::mm", [[3, 4]], None, None),
        ("aten::mm", [[], []], None, None),
        ("aten::mm", [[[3, 4]], [4, 5]], None, None),
        ("aten::mm", [[2**61, 4], [4, 5]], None, None),
        ("aten::convolution", [[2, 3, 16, 16], [8, 3, 3, 3], [8]], None, None),
        ("aten::convolution", [[2, 3, 16, 16], [8, 3, 3, 3]], [*CONVOLUTION[:3], "[0, 0]", *CONVOLUTION[4:]], None),
        ("aten::convolution", [[2, 3, 16, 16], [8, 3, 3, 3]], [0] * 9, None),
        ("aten::convolution", [[2, 3, 16, 16], [8, 3, 3, 3]], {"6": 1}, None),
        ("aten::_flash_attention_forward", [[10, 4, 16]] * 3, None, None),
        ("aten::lstm", [[5, 2, 8]], None, None),
    ],
)  # fmt: skip
def test_operations_of_a_call(name: str, dimensions: Any, values: Any, flops: int | None) -> None:
    assert count_flops(name, inputs(dimensions, values)) == flops


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"null", b"[[1]]", b"[[]]", b"[" * 2000, b"[[[[1]]]]", b"[1]", b'["[1]"]']
)
def test_no_text_of_a_trace_raises(text: bytes) -> None:
    for name in FORMULAS:
        count_flops(name, Inputs((), "", text, text, text))
        count_flops(name, Inputs((), "", b"[[2, 3, 4, 4], [2, 3, 4, 4], [2, 3, 4, 4]]", text, text))


@pytest.mark.torch
def test_they_are_those_of_pytorchs_counter() -> None:
    """All families in one process, which imports PyTorch once."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench/modules/flops.py"), "--json"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert {name: one for name, one in found.items() if one["knows"] and one["shapes"] != one["counter"]} == {}
    assert sum(one["knows"] for one in found.values()) >= 20
    assert all(one["unknown"] == 0 for one in found.values())
    # PyTorch's own formula counts the weight's gradient once for each group; it has none of recurrent layers.
    assert found["convolution in groups"]["shapes"] * 4 == found["convolution in groups"]["counter"] * 3
    assert found["LSTM"]["shapes"] == 3 * 2 * 10 * (64 * 8 + 64 * 16)
    assert found["product in bfloat16"]["types"] == ["bfloat16"]
    assert found["linear under autocast"]["types"] == ["bfloat16"]
