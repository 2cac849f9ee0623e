"""The job behind the recorded traces: a tiny DDP network on gloo whose loop says its own stages and iterations.

torchrun train.py FOLDER LONGER: writes FOLDER/progress.RANK when it is warm and ends when FOLDER/stop is there; rank 1
gets sequences that are LONGER times as long. The annotations `## … ##` are the truth that tests hold the analyzer to,
which does not see them.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

FOLDER, LONGER = Path(sys.argv[1]), int(sys.argv[2])
WARM, WIDTH, BATCH, LENGTH = 10, 256, 8, 32

dist.init_process_group("gloo")
RANK = dist.get_rank()
torch.manual_seed(RANK)
torch.set_num_threads(1)
model = DistributedDataParallel(
    torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(2 * WIDTH),
        torch.nn.Linear(2 * WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, 10),
    )
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
length = LENGTH * (LONGER if RANK == 1 else 1)
samples = torch.utils.data.TensorDataset(torch.randn(4 * BATCH, length, WIDTH), torch.randint(10, (4 * BATCH, length)))
number = 0
ends = torch.zeros(1)
while not ends.item():
    for inputs, targets in torch.utils.data.DataLoader(samples, BATCH):
        with record_function("## zero_grad ##"):
            optimizer.zero_grad()
        with record_function("## forward ##"):
            outputs = model(inputs)
            loss = torch.nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
        with record_function("## backward ##"):
            loss.backward()
        with record_function("## optimizer ##"):
            optimizer.step()
        number += 1
    if number >= WARM:
        (FOLDER / f"progress.{RANK}").touch()
    ends[0] = (FOLDER / "stop").exists()
    dist.all_reduce(ends)  # all end together
dist.barrier()
dist.destroy_process_group()
