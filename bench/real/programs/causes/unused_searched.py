"""DistributedDataParallel that searches for unused parameters of a deep model of small layers, on two ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [layer for _ in range(400) for layer in (nn.Linear(8, 8), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(8, 10)), find_unused_parameters=FAULT)
optimizer = torch.optim.SGD(model.parameters(), 0.01)

while True:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 10, (4,))).backward()
    optimizer.step()
