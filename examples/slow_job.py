"""A training job that is slower than it should be: the example of docs/tutorial/slow-job.md.

torchrun --nproc-per-node 2 slow_job.py               # each batch is read while the model waits
torchrun --nproc-per-node 2 slow_job.py --workers 2   # the fix
"""

import argparse
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Synthetic recordings on a slow disk: each takes 4 ms to read."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.004)
        return torch.full((256,), index % 10 / 10), index % 10


def main() -> None:
    """Trains until the time is up."""
    parser = argparse.ArgumentParser(description="A training job that waits for its data.")
    parser.add_argument("--seconds", type=float, default=600, help="train for so long")
    parser.add_argument("--workers", type=int, default=0, help="processes that read data beside the training")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Recordings(), batch_size=8, num_workers=arguments.workers)

    # All ranks must leave together: rank 0's clock decides.
    end = torch.tensor([time.time() + arguments.seconds], dtype=torch.float64)
    torch.distributed.broadcast(end, 0)
    stop = torch.zeros(1)
    for iteration, (recordings, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(recordings), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 50 == 0:
            stop.fill_(float(time.time() > end.item()))
            torch.distributed.all_reduce(stop)
            if stop.item():
                break
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
