"""Epochs of six batches, for each of which the DataLoader starts its workers again."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = os.environ.get("FAULT") != "0"
torch.set_num_threads(1)
torch.manual_seed(0)
data = TensorDataset(torch.randn(64 * 6, 256), torch.randint(0, 10, (64 * 6,)))
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def main() -> None:
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=not FAULT)
    while True:
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
