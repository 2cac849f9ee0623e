"""The planted programs without their faults: a loader that keeps its workers, rare logs and checkpoints.

Two ranks reduce their gradients once in each step, and one tensor of metrics every hundredth.
"""

import logging
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
logging.basicConfig(filename=Path(tempfile.mkdtemp()) / "train.log", level=logging.INFO)
log = logging.getLogger("train")


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64_000, 512), torch.randint(0, 10, (64_000,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(512, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)
    step = 0
    while True:
        for inputs, labels in loader:
            step += 1
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                metrics = torch.stack((loss.detach(), inputs.mean()))
                dist.all_reduce(metrics)
                log.info("step %d: %s", step, metrics.tolist())
            if step % 1000 == 0 and dist.get_rank() == 0:
                torch.save(model.state_dict(), Path(tempfile.gettempdir()) / f"healthy-{dist.get_world_size()}.pt")


if __name__ == "__main__":
    main()
