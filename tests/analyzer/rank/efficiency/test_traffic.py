"""Bytes that operators move, by their shapes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.rank.efficiency.traffic import count_bytes
from fleetprof_analyzer.trace.trace import Inputs

ROOT = Path(__file__).parents[4]


def moved(name: str, dimensions: Any, types: list[str], values: list[str] | None = None) -> int | None:
    texts = (json.dumps(one).encode() for one in (dimensions, types, values or []))
    dims, kinds, values_text = texts
    return count_bytes(name, Inputs((), "", dims, kinds, values_text))


@pytest.mark.parametrize(
    ("name", "dimensions", "types", "bytes_moved"),
    [
        ("aten::mm", [[3, 4], [4, 5]], ["float", "float"], 4 * (12 + 20 + 15)),
        ("aten::addmm", [[5], [3, 4], [4, 5]], ["c10::BFloat16"] * 3, 2 * (5 + 12 + 20 + 15)),
        ("aten::add_", [[3, 4], [4], []], ["float", "float", "Scalar"], 4 * (12 + 4 + 12)),
        ("aten::gelu", [[3, 4], []], ["c10::Half", ""], 2 * 24),
        ("aten::copy_", [[3, 4], [3, 4], []], ["c10::BFloat16", "float", "Scalar"], 12 * 6),
        ("aten::native_layer_norm", [[3, 4], [], [4], [4], []], ["float", "", "float", "float", "Scalar"], 96),
        # What its shapes or types do not tell.
        ("aten::mm", [[3, 4], [4, 5]], ["something", "float"], None),
        ("aten::gelu", [[]], ["Scalar"], None),
        ("aten::index_select", [[100, 8], [], [5]], ["float", "Scalar", "long int"], None),
    ],
)
def test_each_tensor_counts_once(name: str, dimensions: Any, types: list[str], bytes_moved: int | None) -> None:
    assert moved(name, dimensions, types) == bytes_moved


@pytest.mark.parametrize(("axis", "chosen"), [("0", 5 * 8), ("1", 100 * 5), ("-1", 100 * 5)])
def test_what_is_looked_up_lies_along_an_axis(axis: str, chosen: int) -> None:
    dimensions, types = [[100, 8], [], [5]], ["float", "Scalar", "long int"]
    assert moved("aten::index_select", dimensions, types, ["", axis, ""]) == 5 * 8 + 2 * chosen * 4


@pytest.mark.torch
def test_bytes_by_shapes_are_those_of_the_tensors() -> None:
    """Without the statistics that norms and attention return beside, which are a hundredth or two."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench/modules/traffic.py"), "--json"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    programs = json.loads(ran.stdout.splitlines()[-1])
    pairs = {(program, name): one for program, operators in programs.items() for name, one in operators.items()}
    large = {key: (shapes, tensors) for key, (shapes, tensors) in pairs.items() if tensors > 10_000}
    assert len(large) >= 25
    assert {key: one for key, one in large.items() if abs(one[0] - one[1]) > 0.03 * one[1]} == {}
