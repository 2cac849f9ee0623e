"""Gradients accumulated over eight micro-batches, reduced by DDP after each of them, on two ranks."""

import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(1024, 10)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)

while True:
    optimizer.zero_grad()
    for micro_batch in range(8):
        with nullcontext() if FAULT or micro_batch == 7 else model.no_sync():
            nn.functional.cross_entropy(model(torch.randn(8, 1024)), torch.randint(0, 10, (8,))).backward()
    optimizer.step()
