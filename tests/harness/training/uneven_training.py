"""A data-parallel training job over gloo in which one rank is at fault. Knows nothing of fleetprof.

The faults are real: a data loader that sleeps, Python that works before the forward pass, one core of which the rank
gets a fifth.
"""

import argparse
import os
import subprocess
import sys
import time

import no_compiler  # noqa: F401
import torch
from torch import nn

WIDTH = 256


class Batches(torch.utils.data.Dataset):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.seconds:  # to sleep for no time would let others have the core
            time.sleep(self.seconds)
        return torch.full((64, WIDTH), float(index % 7))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "loader", "host", "core"], default="none")
    parser.add_argument("--fault-rank", type=int, default=0)
    parser.add_argument("--fault-seconds", type=float, default=0.06, help="per iteration, for loader and host")
    parser.add_argument("--pause", type=float, default=0.01, help="what every rank's loader takes")
    parser.add_argument("--repeat", type=int, default=1, help="layers, so compute per iteration")
    parser.add_argument("--seconds", type=float, default=90, help="the job ends by itself after this long")
    parser.add_argument("--progress", required=True)
    parser.add_argument("--stop-when", required=True)
    return parser.parse_args()


def slow_core(core: int) -> "subprocess.Popen[bytes]":
    """Ties this process to one core and lets it run a fifth of the time, as a quota would; the child ends with it."""
    os.sched_setaffinity(0, {core})
    quota = (
        "import os, signal, time\n"
        f"trainer = {os.getpid()}\n"
        "while os.getppid() == trainer:\n"
        "    os.kill(trainer, signal.SIGSTOP)\n"
        "    time.sleep(0.04)\n"
        "    os.kill(trainer, signal.SIGCONT)\n"
        "    time.sleep(0.01)\n"
    )
    return subprocess.Popen([sys.executable, "-S", "-c", quota], env={})


def work_in_python(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    at_fault = rank == arguments.fault_rank
    model: nn.Module = nn.Sequential(
        *(layer for _ in range(arguments.repeat) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU()))
    )
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    slow = arguments.fault == "loader" and at_fault
    seconds = arguments.pause + (arguments.fault_seconds if slow else 0)
    batches = iter(torch.utils.data.DataLoader(Batches(seconds), batch_size=None))
    quota = slow_core(max(os.sched_getaffinity(0))) if arguments.fault == "core" and at_fault else None
    begin = time.monotonic()
    step = 0
    ends = False
    while not ends:
        batch = next(batches)
        if arguments.fault == "host" and at_fault:
            work_in_python(arguments.fault_seconds)
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step == 5:
            open(f"{arguments.progress}.{rank}", "w").close()
        if step % 10 == 0:  # all ranks leave together
            flag = torch.tensor(
                float(time.monotonic() - begin > arguments.seconds or os.path.exists(arguments.stop_when))
            )
            torch.distributed.all_reduce(flag)
            ends = bool(flag)
    if quota is not None:
        quota.kill()
        quota.wait()
    torch.distributed.barrier()
    time.sleep(0.5)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
