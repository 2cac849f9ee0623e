"""Gradients accumulated over four micro-batches with no_sync, in bfloat16 by autocast, on two ranks."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MICRO = 4

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
)
net(torch.zeros(1, 3, 32, 32))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", enabled=False)
data = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 10, (4096,)))
loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data), drop_last=True)

for epoch in range(1000):
    for step, (images, labels) in enumerate(loader):
        last = step % MICRO == MICRO - 1
        with contextlib.nullcontext() if last else model.no_sync():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(images), labels) / MICRO
            scaler.scale(loss).backward()
        if last:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
        if step % 40 == 0 and dist.get_rank() == 0:
            print(epoch, step, loss.item(), flush=True)
