"""Trainings of two ranks; whether they go on is agreed on in each iteration."""

import os
import time

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from training import LEAST, SteadyTraining, run_one, tell


def _train(fails: bool) -> None:
    distributed.init_process_group("gloo")
    rank, training = distributed.get_rank(), SteadyTraining()
    model = DistributedDataParallel(training.model)
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    flag, began = torch.ones(1), time.monotonic()
    while True:
        model(torch.randn(4, training.width)).pow(2).mean().backward()
        training.optimizer.step()
        training.optimizer.zero_grad()
        training.count()
        if fails and restarts == "0" and rank == 1 and time.monotonic() - began > 4:
            raise RuntimeError("as meant")
        flag[0] = float(training.goes_on())
        distributed.all_reduce(flag, op=distributed.ReduceOp.MAX)
        if not flag.item():
            break
    tell(rank, restarts, training.digest, training.iterations >= LEAST)
    distributed.destroy_process_group()


def two_ranks() -> None:
    _train(False)


def restarted_by_torchrun() -> None:
    _train(True)


if __name__ == "__main__":
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
