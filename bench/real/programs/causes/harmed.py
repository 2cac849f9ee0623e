"""A loop of plain Python whose calls cost ten times as much while a recording has their stacks: it must not go on."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def count(number: int) -> int:
    return number


def tokenize() -> int:
    total = 0
    for number in range(300_000):
        total += count(number)
    return total


while True:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 64)), torch.randint(0, 10, (8,))).backward()
    tokenize()
    optimizer.step()
