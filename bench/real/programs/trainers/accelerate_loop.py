"""accelerate: the loop of its documentation on two ranks, a small transformer encoder, gradients clipped."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(128, 5)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)).mean(1))


accelerator = Accelerator(cpu=True)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 10_000)
loader = DataLoader(TensorDataset(torch.randint(0, 2000, (8192, 64)), torch.randint(0, 5, (8192,))), 16, shuffle=True)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

for epoch in range(1000):
    for step, (tokens, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            accelerator.print(epoch, step, loss.item(), flush=True)
