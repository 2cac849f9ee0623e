"""Sixty metrics that are reduced one by one in each step, and read at once, on two ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)))
optimizer = torch.optim.AdamW(model.parameters(), 0.001)


def log_metrics(loss: torch.Tensor) -> float:
    total = 0.0
    for number in range(60):
        value = loss.detach() * number
        dist.all_reduce(value)
        total += value.item()
    return total


while True:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,)))
    loss.backward()
    optimizer.step()
    if FAULT:
        log_metrics(loss)
