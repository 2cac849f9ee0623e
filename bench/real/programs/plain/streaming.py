"""An IterableDataset that streams records from a slow source through two workers each, on two ranks with DDP."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks

    def __iter__(self):
        worker = get_worker_info()
        record = self.rank * worker.num_workers + worker.id
        while True:
            time.sleep(0.002)
            source = torch.Generator().manual_seed(record)
            yield torch.randn(128, generator=source), record % 10
            record += self.ranks * worker.num_workers


if __name__ == "__main__":
    dist.init_process_group("gloo")
    stream = Stream(dist.get_rank(), dist.get_world_size())
    loader = DataLoader(stream, batch_size=32, num_workers=2, prefetch_factor=2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step, (inputs, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(step, loss.item(), flush=True)
