"""A small distributed training job on the CPU: what `fleetprof demo` captures. It knows nothing of fleetprof.

    torchrun --nproc-per-node 4 train.py

A classifier of synthetic pictures, data-parallel over gloo. Each rank reads its batches through a data loader, and one
rank reads more slowly than the others (--slow-rank), so that there is something to find.
"""

import argparse
import os
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

CLASSES = 10


class Pictures(Dataset):
    """Synthetic pictures, made when they are read; reading takes `read_s` seconds more."""

    def __init__(self, read_s: float) -> None:
        self.read_s = read_s

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.read_s)
        label = index % CLASSES
        return torch.full((3, 32, 32), label / CLASSES), label


def make_model() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 256),
        nn.ReLU(),
        nn.Linear(256, CLASSES),
    )


def main() -> None:
    """Trains until the time is up."""
    parser = argparse.ArgumentParser(description="A small distributed training job on the CPU.")
    parser.add_argument("--seconds", type=float, default=600, help="train for so long")
    parser.add_argument("--batch", type=int, default=16, help="pictures per rank and iteration")
    parser.add_argument("--slow-rank", type=int, default=-1, help="this rank reads its data more slowly")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(0.003 if rank == arguments.slow_rank else 0.001), batch_size=arguments.batch)

    # All ranks must leave together: rank 0's clock decides.
    end = torch.tensor([time.time() + arguments.seconds], dtype=torch.float64)
    torch.distributed.broadcast(end, 0)
    stop = torch.zeros(1)
    for iteration, (pictures, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 100 == 0:
            stop.fill_(float(time.time() > end.item()))
            torch.distributed.all_reduce(stop)
            if rank == 0:
                print(f"iteration {iteration}, loss {loss.item():.4f}", flush=True)
            if stop.item():
                break
    torch.distributed.destroy_process_group()
    print(f"rank {os.environ['RANK']} is done", flush=True)


if __name__ == "__main__":
    main()
