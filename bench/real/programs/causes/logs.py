"""A loop that logs norm and extremes of every parameter in every step, to a file and as text."""

import logging
import os
import tempfile
from pathlib import Path

import torch
from torch import nn

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
logging.basicConfig(
    filename=Path(tempfile.mkdtemp()) / "train.log", level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
)
log = logging.getLogger("train")
model = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(128, 128), nn.ReLU())], nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)

while True:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(32, 128)), torch.randint(0, 10, (32,)))
    loss.backward()
    optimizer.step()
    for number in range(1500 if FAULT else 0):
        log.info("parameter %d of the step: loss %.6f", number, loss.item())
