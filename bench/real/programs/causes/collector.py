"""A language model's data step that keeps small objects by the thousand: the collector runs again and again."""

import gc
import os

import torch
from torch import nn

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
if not FAULT:
    gc.disable()
heap = [[{"tokens": [number]}] for number in range(300_000)]
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
kept: list[list[dict[str, list[int]]]] = []


def tokenize() -> list[dict[str, list[int]]]:
    return [{"ids": [number]} for number in range(60_000)]


while True:
    kept.append(tokenize())
    if len(kept) > 20:
        kept.clear()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,))).backward()
    optimizer.step()
