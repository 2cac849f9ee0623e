"""A compiled model that is given another length in each step, without a dimension that may vary."""

import os

import torch
import torch._dynamo
from torch import nn

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1_000_000
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
model = torch.compile(net, backend="aot_eager", dynamic=False)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
length = 16

while True:
    length += FAULT
    nn.functional.cross_entropy(model(torch.randn(length, 64)), torch.randint(0, 10, (length,))).backward()
    optimizer.step()
    optimizer.zero_grad()
