"""A real job of two ranks that hangs: `fleetprof stacks` names the rank, the cause and the line."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from harness.training.local_system import Local

pytestmark = pytest.mark.torch

HANGS = """\
import time

import torch
import torch.distributed as dist

def hang():
    time.sleep(600)

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1000):
    if step == 5 and dist.get_rank() == 1:
        hang()
    optimizer.zero_grad()
    model(torch.ones(8)).sum().backward()
    optimizer.step()
    time.sleep(0.1)
"""


def test_a_hung_job_is_told(hub: Local, tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HANGS)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    job = hub.run_command("hung", *torchrun, str(program))

    verdict = _await_verdict(hub, "hung")

    assert (verdict["cause"], verdict["ranks"]) == ("blocked_in_line", [1]), verdict
    assert "it is blocked in a call (hangs.py:7 hang). Rank 0 waits for it." in verdict["sentence"]
    text = hub.command("stacks", "hung").stdout
    assert verdict["sentence"] in text
    assert f"{program}:7 hang" in text
    os.killpg(job.process.pid, signal.SIGTERM)  # it does not end as it means to
    assert job.process.wait(60)


def test_a_job_that_is_not_there(hub: Local) -> None:
    answer = hub.command("stacks", "nobody")
    assert answer.returncode == 5
    assert "no job 'nobody' runs now" in answer.stderr


def _await_verdict(hub: Local, name: str) -> dict[str, Any]:
    """The first that is not that the job moves, or is not there yet."""
    verdict: dict[str, Any] = {}
    for _ in range(120):
        answer = hub.command("stacks", name, "-o", "json")
        found = list(json.loads(answer.stdout).values()) if answer.returncode == 0 else []
        verdict = found[0]["verdict"] if found else {}
        if verdict and verdict["stands_ns"] and verdict["cause"] != "moves":
            return verdict
        time.sleep(0.5)
    raise AssertionError(f"no verdict: {verdict} {answer.stderr}")
