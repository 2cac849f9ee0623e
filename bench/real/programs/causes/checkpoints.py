"""A loop that saves model and optimizer in every fourth step, on the thread that trains."""

import os
import tempfile
from pathlib import Path

import torch
from torch import nn

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters(), 0.001)
folder = Path(tempfile.mkdtemp())
table = torch.zeros(8_000_000)


def save_checkpoint(step: int) -> None:
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "table": table}
    torch.save(state, folder / "latest.pt")


step = 0
while True:
    step += 1
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,))).backward()
    optimizer.step()
    if FAULT and step % 4 == 0:
        save_checkpoint(step)
