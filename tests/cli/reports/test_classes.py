"""`fleetprof analyze --classes`: kernels of the user's own, and files that hold none."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path


def test_kernels_are_what_the_file_says(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "my_reduce", "pid": 0, "tid": 7, "ts": 0, "dur": 10,
             "args": {"device": 0, "stream": 7}}  # fmt: skip
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": [event]}))
    (tmp_path / "own.yaml").write_text("- {pattern: my_*, class: Communication}\n")
    result = fleetprof("analyze", tmp_path / "rank0.json", "-o", "json", "--classes", tmp_path / "own.yaml")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["totals"][0]["time_ns"]["exposed_communication"] == 10_000
    assert report["asked_kernel_classes"] == [{"pattern": "my_*", "work_class": "communication"}]


def test_a_file_that_breaks_the_rules_is_refused_by_entry(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "rank0.json").write_text('{"traceEvents": []}')
    (tmp_path / "own.yaml").write_text("- {pattern: my_*, class: Slow}\n")
    result = fleetprof("analyze", tmp_path / "rank0.json", "--classes", tmp_path / "own.yaml")
    assert result.returncode == 2
    assert "classes[0].class: must be Compute, Communication or Memory, got 'Slow'" in result.stderr
