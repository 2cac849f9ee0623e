"""Operators of small models of many kinds are assigned to the module that the model itself names (bench/modules)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
LEAST_RIGHT, MOST_WRONG = 99, 1  # per cent of the operators' time that modules made


@pytest.mark.torch
def test_operators_are_on_the_module_that_called_them() -> None:
    """All kinds in one process, which imports PyTorch once."""
    program = ROOT / "bench/modules/run.py"
    ran = subprocess.run(
        [sys.executable, str(program), "--json"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    cases = json.loads(ran.stdout.splitlines()[-1])["cases"]
    assert len(cases) >= 15
    assert {name: one for name, one in cases.items() if one["right"] < LEAST_RIGHT or one["wrong"] > MOST_WRONG} == {}
    assert all(one["whole"] for one in cases.values())
    # Of the iterations before the marked one: what chance leaves out is never taken for another.
    assert {name: one for name, one in cases.items() if one["measured_wrong"] > MOST_WRONG} == {}
    shares = {name: one["measured_right"] for name, one in cases.items() if name != "stochastic_depth"}
    assert {name: share for name, share in shares.items() if share < LEAST_RIGHT} == {}
