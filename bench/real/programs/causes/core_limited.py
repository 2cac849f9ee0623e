"""Two ranks of DDP, the second of which may use a tenth of a core by its control group's quota; needs root."""

import atexit
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FAULT = os.environ.get("FAULT") != "0"
QUOTA_US, PERIOD_US = 10_000, 100_000
GROUPS = Path("/sys/fs/cgroup")
torch.set_num_threads(1)


def limit_cores() -> None:
    """Puts this process into a group of its own, which goes with it; version 2 of control groups, else version 1."""
    unified = (GROUPS / "cgroup.subtree_control").exists()
    parent = GROUPS if unified else GROUPS / "cpu"
    group = parent / f"fleetprof-bench-{os.getpid()}"
    group.mkdir()
    atexit.register(group.rmdir)
    atexit.register(lambda: (parent / "cgroup.procs").write_text(str(os.getpid())))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if unified:
        (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    (group / "cgroup.procs").write_text(str(os.getpid()))


dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(256, 10)))
optimizer = torch.optim.AdamW(model.parameters(), 0.001)
if FAULT and dist.get_rank() == 1:
    limit_cores()

while True:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,))).backward()
    optimizer.step()
