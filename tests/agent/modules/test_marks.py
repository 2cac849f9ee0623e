"""Modules of every kind are marked right, or not at all, and the job is as if nobody had looked.

The cases are in marked_models.py, one process for all of them; each asserts there that nothing of ours is left.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fleetprof_agent
import pytest
from fleetprof_agent.modules import table
from fleetprof_api.samples import MOST_MODULES, ModuleColumns
from harness.training.local_job import NO_COMPILER

pytestmark = pytest.mark.torch

TESTS = Path(__file__).parents[2]
PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)
PAIR = ["+Pair", "+Pair.a", "-Pair.a", "+Pair.b", "-Pair.b", "-Pair"]
EXPECTED: dict[str, Any] = {
    "nested": PAIR,
    "exception": [
        "+Catches", "+Catches.inner", "+Catches.inner.0", "-Catches.inner.0", "-Catches.inner",
        "+Catches.after", "-Catches.after", "-Catches",
    ],
    # PyTorch calls no hook for what is no Exception: the marks are left with the module around them.
    "interrupted": [
        "+Catches", "+Catches.inner", "+Catches.inner.0", "+Catches.after", "-Catches.after", "-Catches.inner.0",
        "-Catches.inner", "-Catches",
    ],
    "recursion": ["+Counts", "+Counts", "+Counts", "-Counts", "-Counts", "-Counts"],
    "made meanwhile": [
        "+Makes", "+Makes.(Sequential)", "+Makes.(Sequential).0", "-Makes.(Sequential).0", "-Makes.(Sequential)",
        "-Makes",
    ],
    "threads": sorted([*PAIR, *PAIR]),
    "directly": ["+Linear", "-Linear", "+Linear#2", "-Linear#2"],
    "two roots": ["+Linear", "-Linear", "+Linear#2", "-Linear#2", "+Linear", "-Linear"],
    "data parallel": ["+DataParallel", "+DataParallel.module", "-DataParallel.module", "-DataParallel"],
    "replicas": ["+Sequential", "+Sequential.0", "-Sequential.0", "-Sequential"] * 2,
    "checkpoint": 2,
    "reentrant": 2,
    "same numbers": True,
    "modes": True,
    "stopped": [0, True],
    "forked": [[[], True], len(PAIR)],
    "broken": [False, True],
    "compiled": [
        "+OptimizedModule", "+OptimizedModule._orig_mod", "+OptimizedModule#2", "+OptimizedModule#2._orig_mod",
    ],
    "compiled meanwhile": [
        False,
        [
            "+begin", "-begin", "+Sequential", "+Sequential.0", "-Sequential.0", "+Sequential.1",
            "+Sequential.1._orig_mod", "-Sequential.1._orig_mod", "-Sequential.1", "-Sequential", "+end", "-end",
        ],
    ],
    "described": {
        "first": 0,
        "name": ["Tied", "Tied.a", "Tied.cells", "Tied.b"],
        "class_name": ["Tied", "Linear", "LSTM", "Sequential"],
        "file": ["marked_models.py", "linear.py", "rnn.py", "container.py"],
        "call_file": ["marked_models.py"] * 4,
        "call_text": [
            "model(X)",
            *['return {"out": self.b(self.a(x)), "state": [self.cells(x[None]), 3, None]}'] * 3,
        ],
        "calls": [1, 2, 1, 1],
        "parameter_bytes": [0, 80, 640, 0],
        "output_bytes": [96, 64, 64, 32],
    },
    "weighed": [
        ["Words", 2, 0, 0, 0, 96, 5, None],  # a product, and exp's result
        ["Words.table", 2, 160, 160, 324, 120, None, 25],  # indices; tied weights count here
        ["Words.layer", 2, 80, 80, 168, 48, None, None],
        ["Words.frozen", 2, 80, 0, 0, 0, None, None],
        ["Words.norm", 2, 32, 32, 72, 80, None, None],
        ["Words.scales", 0, 16, 16, 36, 0, None, None],
        ["Words.out", 2, 0, 0, 0, 0, None, None],  # what it saves is exp's result
    ],
    "weighed again": [
        ["Holds", 1, 0, 0, 0, 32, 2, None],
        ["Holds.pair", 2, 0, 0, 0, 0, None, None],
        ["Holds.pair.a", 2, 80, 80, 0, 0, None, None],
        ["Holds.pair.b", 2, 80, 80, 0, 0, None, None],
    ],
    "fused": [[["Fuses", 1, 64, 0, 0, 32, 2, None]], True, 32.0],
    "unknown": [
        ["Pair", 2, 0, 0, 0, None, 4, None],
        ["Pair.a", 2, 80, 0, 0, None, None, None],
        ["Pair.b", 2, 80, 0, 0, None, None, None],
    ],
    "scripted": ["+Sequential", "+Sequential.0", "-Sequential.0", "-Sequential"],
}  # fmt: skip


def test_the_columns_are_those_that_the_sidecar_reads() -> None:
    assert set(table.COLUMNS) == set(ModuleColumns.__struct_fields__)
    assert table.MOST_MODULES == MOST_MODULES


@pytest.mark.parametrize("python", PYTHONS)
def test_modules_are_marked_and_the_job_is_unharmed(python: str) -> None:
    program = Path(__file__).with_name("marked_models.py")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (Path(fleetprof_agent.__file__).parents[1], NO_COMPILER.parent, TESTS))),
        "WITH_COMPILER": "front",
        "OMP_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [python, "-c", f"import no_compiler, runpy; runpy.run_path({str(program)!r}, run_name='__main__')"],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.rpartition("FOUND ")[2])
    assert found.keys() == EXPECTED.keys()
    assert {name: result for name, result in found.items() if result != EXPECTED[name]} == {}
