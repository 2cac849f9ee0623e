"""torch.compile around DDP on two ranks: a multilayer perceptron with layer norm, an ordinary loader."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(128, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)
)
model = torch.compile(DistributedDataParallel(net))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
data = TensorDataset(torch.randn(65_536, 128), torch.randint(0, 10, (65_536,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=256, sampler=sampler)

for epoch in range(1000):
    sampler.set_epoch(epoch)
    for step, (inputs, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(epoch, step, loss.item(), flush=True)
