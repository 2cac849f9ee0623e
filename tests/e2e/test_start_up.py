"""Captures that are asked for while the job starts: every rank, at the first try, from one step on."""

import json

import pytest
from harness.training.local_system import Local
from harness.waiting import wait_until

pytestmark = pytest.mark.torch


def test_a_capture_before_its_job_takes_every_rank(local: Local) -> None:
    """The job comes later, its launcher before its ranks, and PyTorch's import is held up in its middle."""
    capture = local.begin("capture", "early", "--wait-for-job", "--iterations", "2", "--canary", "Never")
    wait_until(lambda: "waiting for job early" in capture.read_output(), "the wait for the job")
    go_on = local.folder / "go"
    job = local.run("early", ranks=2, torchrun=(), environment={"HOLD_IMPORT": str(go_on)})
    wait_until(lambda: "ranks are still importing PyTorch" in capture.read_output(), "the wait for PyTorch")
    polled = [process.polls_kineto for sidecar in local.fleet().sidecars for process in sidecar.processes]
    go_on.touch()

    assert capture.process.wait(120) == 0, capture.read_output()

    assert any(polled)
    (status,) = json.loads(local.command("list", "-o", "json").stdout)["captures"]
    assert status["start_mode"] == "step"
    assert [rank["state"] for rank in status["ranks"]] == ["UPLOADED"] * 2
    assert job.stop() == 0
