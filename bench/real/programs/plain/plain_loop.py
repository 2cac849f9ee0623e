"""The loop that everybody writes first; `ipython plain_loop.py` and a notebook's cells run it as well."""

import torch
from torch import nn

model = nn.Sequential(
    nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images, labels = torch.rand(16_384, 784), torch.randint(0, 10, (16_384,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=64, shuffle=True)

for epoch in range(1000):
    running = 0.0
    for image, label in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(epoch, running / len(loader), flush=True)
