"""A trainer and its three loader workers that may use one core only."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)


class Augmented(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 10_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        until = time.perf_counter() + 0.0004
        while time.perf_counter() < until:
            pass
        return torch.full((256,), float(index % 7)), index % 10


def main() -> None:
    if FAULT:
        os.sched_setaffinity(0, {0})
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for inputs, labels in DataLoader(Augmented(), batch_size=64, num_workers=3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
