"""Stages of a real loop on two ranks: the one that sleeps is the host's, the one that waits for it is in backward."""

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.traces.planted.loop import measure
from harness.training.local_job import NO_COMPILER

pytestmark = pytest.mark.torch

PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)
LOOP = (
    f"""
import os, sys, time
sys.path.append({str(NO_COMPILER.parent)!r})
import no_compiler, torch
"""
    + """
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def evaluate():
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    if rank == 1:
        time.sleep(0.1)
    loss.backward()
    return loss
def iterate(closure):
    if closure:
        optimizer.step(evaluate)
    else:
        evaluate()
        optimizer.step()
threads = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
cpu = torch.profiler.ProfilerActivity.CPU
for closure in (False, True):
    iterate(closure)
    with torch.profiler.profile(activities=[cpu], experimental_config=threads) as profiler:
        for _ in range(6):
            iterate(closure)
    profiler.export_chrome_trace(f"rank{rank}-{closure}.json")
torch.distributed.barrier()
time.sleep(0.5)  # gloo may abort a process that leaves while others talk
torch.distributed.destroy_process_group()
"""
)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_rank_that_waits_is_in_backward_and_the_one_that_sleeps_is_not(tmp_path: Path, python: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "KINETO_LOG_LEVEL": "99"}
    (tmp_path / "loop.py").write_text(LOOP)
    ranks = [
        subprocess.Popen([python, "loop.py"], cwd=tmp_path, env=os.environ | common | {"RANK": str(rank)})
        for rank in range(2)
    ]
    try:
        assert [rank.wait(120) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    for closure in (False, True):
        longest = []
        for number in range(2):
            file = tmp_path / f"rank{number}-{closure}.json"
            trace = read_trace(io.BytesIO(file.read_bytes()), file.name, Problems())
            assert trace.recorded_permille == 1000
            stages = measure(trace).stages
            assert {stage.stage for stage in stages} >= {"forward", "zero_grad", "backward", "optimizer"}
            longest.append(max(stages, key=lambda stage: stage.time_ns).stage)
        assert longest == ["backward", "host"]
