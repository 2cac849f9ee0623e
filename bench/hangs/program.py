"""A job of some ranks that hangs after a few steps, in the way that its first argument names.

    python bench/hangs/launch.py 2 bench/hangs/program.py not_entered

`ways.WAYS` has each way, with the cause that `fleetprof stacks` is to name and whether it marks a line.
"""

import os
import signal
import sys
import time
from pathlib import Path

way = sys.argv[1]
if "compile" not in way and "fsdp" not in way:
    sys.path.append(str(Path(__file__).parents[2] / "tests" / "harness" / "training"))
    import no_compiler  # noqa: F401 - three quarters of a rank's start

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from ways import WAYS, Strikes, wait_for_socket  # noqa: E402

STEPS = 5


class Slow(Dataset[torch.Tensor]):
    """Items that a worker gives until the hang begins."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= STEPS and self.way == "worker_stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if index >= STEPS and self.way == "loader_worker_killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if index >= STEPS and self.way == "loader_worker_exits":
            os._exit(1)
        if index >= STEPS and self.way == "worker_reads":
            wait_for_socket()
        return torch.ones(8)


def main() -> None:
    torch.set_num_threads(1)
    hang = WAYS[way]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    is_culprit = rank == hang.culprit
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    in_worker = hang.place is Strikes.WORKER
    data = iter(DataLoader(Slow(way if is_culprit else ""), num_workers=1 if in_worker else 0))
    pause_s = 0.3
    for step in range(100_000):
        item = next(data)  # LINE:worker_stopped worker_reads
        try:
            if step == STEPS and hang.run is not None and (is_culprit or hang.place is Strikes.ALL):
                pause_s = hang.run(rank) or pause_s
            optimizer.zero_grad()
            model(item).sum().backward()
        except RuntimeError:
            time.sleep(600)  # a job that waits for who is gone to come back
        if way != "no_optimizer":
            optimizer.step()
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
