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
    if step == {step} and dist.get_rank() == 1:
        hang()
    optimizer.zero_grad()
    model(torch.ones(8)).sum().backward()
    optimizer.step()
    time.sleep(0.1)
"""


@pytest.mark.parametrize("step", [0, 5])
def test_a_hung_job_is_told(hub: Local, tmp_path: Path, step: int) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HANGS.format(step=step))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    name = f"hung-at-{step}"
    job = hub.run_command(name, *torchrun, str(program))

    verdict = _await_verdict(hub, name)

    assert (verdict["cause"], verdict["ranks"]) == ("sleeps", [1]), verdict
    assert "it sleeps (hangs.py:7 hang: time.sleep). Rank 0 has waited " in verdict["sentence"]
    assert verdict["may_go_on"] is (step == 0), "a start may take any time"
    text = hub.command("stacks", name).stdout
    assert verdict["sentence"].partition(" has waited ")[0] in text
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
