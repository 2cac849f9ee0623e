"""torchvision's classification reference in small: resnet18 on FakeData, v2 transforms, a worker, metrics."""

import time
from collections import deque

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.models import resnet18
from torchvision.transforms import v2


def train_one_epoch(model, criterion, optimizer, loader, epoch):
    model.train()
    losses, began = deque(maxlen=20), time.time()
    for step, (image, target) in enumerate(loader):
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = (output.argmax(1) == target).float().mean().item()
        losses.append(loss.item())
        if step % 10 == 0:
            speed = (step + 1) * image.shape[0] / (time.time() - began)
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch} {step} loss {mean:.3f} accuracy {accuracy:.3f} {speed:.1f} img/s", flush=True)


if __name__ == "__main__":
    transform = v2.Compose(
        [v2.ToImage(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])]
    )
    data = FakeData(size=4096, image_size=(3, 64, 64), num_classes=10, transform=transform)
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    model = resnet18(num_classes=10)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    for epoch in range(1000):
        train_one_epoch(model, criterion, optimizer, loader, epoch)
        scheduler.step()
