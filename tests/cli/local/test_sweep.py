"""`fleetprof sweep`: what it refuses, and a real job at two batch sizes with the size to take."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.training.local_job import NO_COMPILER

Fleetprof = Callable[..., subprocess.CompletedProcess[str]]

TRAINING = f"""
import sys
sys.path.append("{NO_COMPILER.parent}")
import no_compiler
import torch
model = torch.nn.Linear(1024, 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    model(torch.randn(int(sys.argv[1]), 1024)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

REFUSED = [
    ("batch_size=8", "two or more"),
    ("batch_size=8,8", "two or more"),
    ("batch_size=8,x", "batch_size=8,16,32"),
    ("batch_size=0,8", "batch_size=8,16,32"),
    ("lr=8,16", "batch_size=8,16,32"),
]


@pytest.mark.parametrize(("setting", "reason"), REFUSED)
def test_sizes_that_tell_nothing_are_refused(fleetprof: Fleetprof, setting: str, reason: str) -> None:
    result = fleetprof("sweep", "--set", setting, "--", "true", "{batch_size}")
    assert result.returncode == 2
    assert reason in result.stderr


def test_a_command_without_the_size_is_refused(fleetprof: Fleetprof) -> None:
    result = fleetprof("sweep", "--set", "batch_size=8,16", "--", "true")
    assert result.returncode == 2
    assert "{batch_size} is nowhere" in result.stderr


@pytest.mark.parametrize("memory", ["0", "-1", "nan"])
def test_no_memory_is_refused(fleetprof: Fleetprof, memory: str) -> None:
    result = fleetprof("sweep", "--set", "batch_size=8,16", f"--memory={memory}", "--", "true", "{batch_size}")
    assert result.returncode == 2
    assert "--memory" in result.stderr


@pytest.mark.torch
def test_a_real_job_is_run_at_each_size_and_a_size_is_named(fleetprof: Fleetprof, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = (sys.executable, str(tmp_path / "train.py"), "{batch_size}")
    result = fleetprof("sweep", "--set", "batch_size=16,1024", "--iterations", "4", "-o", "json", "--", *words)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert [row["batch_size"] for row in answer["rows"]] == [16, 1024]
    assert all(row["iterations"] >= 4 for row in answer["rows"])
    assert all(row["memory_bytes"] > 1e7 for row in answer["rows"])
    assert answer["slope_ns"] > 0
    assert answer["command"] == f"{words[0]} {words[1]} {answer['recommended']}"
