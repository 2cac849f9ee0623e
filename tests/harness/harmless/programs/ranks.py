"""Trainings of two ranks."""

import os

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from training import LEAST, SteadyTraining, run_one, tell


def two_ranks() -> None:
    distributed.init_process_group("gloo")
    rank, training = distributed.get_rank(), SteadyTraining()
    model = DistributedDataParallel(training.model)
    flag = torch.ones(1)
    while True:
        model(torch.randn(4, training.width)).pow(2).mean().backward()
        training.optimizer.step()
        training.optimizer.zero_grad()
        training.count()
        flag[0] = float(training.goes_on())
        distributed.all_reduce(flag, op=distributed.ReduceOp.MAX)
        if not flag.item():
            break
    tell(rank, training.digest, training.iterations >= LEAST)
    distributed.destroy_process_group()


def restarted_by_torchrun() -> None:
    """Ranks without a process group: gloo does not connect again after torchrun's restart on every machine."""
    rank, restarts = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    training = SteadyTraining(least=4 * LEAST)
    while training.goes_on():
        training.iterate()
        if (rank, restarts, training.iterations) == ("1", "0", training.least // 2):
            raise RuntimeError("as meant")
    if restarts == "1":  # before it, one rank may or may not have ended when the other fails
        tell(rank, training.digest)


if __name__ == "__main__":
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
