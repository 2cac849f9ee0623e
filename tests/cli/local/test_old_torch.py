"""A job whose PyTorch is too old: whoever asks is told so, with the version."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.forked import StartedCommand
from harness.training.fake_torch import FAKE_TORCH, put
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]


def test_every_command_names_the_version(
    hub: StartedCommand,
    start: Callable[..., StartedCommand],
    fleetprof: Callable[..., Finished],
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    packages = put(tmp_path / "packages", {**FAKE_TORCH, "torch/version.py": "__version__ = '2.9.1+cpu'\n"})
    code = f"import sys; sys.path.insert(0, {packages!r}); import time, torch; time.sleep(300)"
    job = start("run", "--name", "old", "--", sys.executable, "-c", code, log="job.log")
    sentence = "this job cannot be captured: PyTorch 2.9.1+cpu is too old; use PyTorch 2.10 or later"
    wait_until(lambda: sentence in (tmp_path / "job.log").read_text(), "the reason")

    listed = fleetprof("list").stdout
    assert "PyTorch 2.9.1+cpu is too old: use PyTorch 2.10 or later" in listed
    checks = json.loads(fleetprof("doctor", "-o", "json").stdout)["checks"]
    (check,) = [check for check in checks if check["name"] == "job old"]
    assert (check["verdict"], check["advice"]) == ("fail", "PyTorch 2.9.1+cpu is too old: use PyTorch 2.10 or later")
    capture = fleetprof("capture", "old")
    assert (capture.returncode, capture.stdout) == (5, "")
    assert "PyTorch 2.9.1+cpu of Job/old is too old to be captured; use PyTorch 2.10 or later" in capture.stderr

    job.terminate()
    job.wait(60)
    assert (tmp_path / "job.log").read_text().count(sentence) == 1
