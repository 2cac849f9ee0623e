"""`fleetprof analyze --iteration-range`: iterations of a job without an optimizer, by a range of its own."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three calls of a server's model, at 0, 10 and 30 ms."""
    calls = [
        {"ph": "X", "cat": "user_annotation", "name": "execute_model", "pid": 1, "tid": 1, "ts": at * 1000, "dur": 5000}
        for at in (0, 10, 30)
    ]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": calls}))
    return path


def test_each_range_begins_an_iteration(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], trace: Path
) -> None:
    result = fleetprof("analyze", trace, "-o", "json", "--iteration-range", "execute_model")
    assert result.returncode == 0, result.stderr
    (rank,) = json.loads(result.stdout)["ranks"]
    assert [one["duration_ns"] for one in rank["iterations"]] == [10_000_000, 20_000_000]
    assert rank["iterations_from"] == "named_range"


def test_a_name_that_is_not_there_is_said(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], trace: Path
) -> None:
    result = fleetprof("analyze", trace, "-o", "json", "--iteration-range", "forward")
    assert result.returncode == 2
    assert "no rank has two ranges named 'forward'" in result.stderr
