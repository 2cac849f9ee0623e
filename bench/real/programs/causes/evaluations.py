"""A loop that evaluates on twenty batches after every fifth step."""

import os

import torch
from torch import nn

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
held_out = [(torch.randn(128, 512), torch.randint(0, 10, (128,))) for _ in range(20)]


@torch.no_grad()
def evaluate() -> float:
    model.eval()
    right = sum(float((model(inputs).argmax(1) == labels).float().mean()) for inputs, labels in held_out)
    model.train()
    return right / len(held_out)


step = 0
while True:
    step += 1
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(64, 512)), torch.randint(0, 10, (64,))).backward()
    optimizer.step()
    if FAULT and step % 5 == 0:
        print(step, evaluate(), flush=True)
