"""timm's training script in small: a vision transformer, mixup with a soft target, cosine schedule, averaged."""

from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.models import create_model
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, dispatch_clip_grad
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor

model = create_model("vit_tiny_patch16_224", num_classes=10, img_size=64, depth=4)
ema = ModelEmaV3(model, decay=0.999)
optimizer = create_optimizer_v2(model, opt="adamw", lr=5e-4, weight_decay=0.05)
scheduler = CosineLRScheduler(optimizer, t_initial=100, warmup_t=5, warmup_lr_init=1e-6)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=10)
criterion = SoftTargetCrossEntropy()
data = FakeData(size=2048, image_size=(3, 64, 64), num_classes=10, transform=ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
losses, updates = AverageMeter(), 0

for epoch in range(1000):
    for step, (images, labels) in enumerate(loader):
        images, target = mixup(images, labels)
        loss = criterion(model(images), target)
        loss.backward()
        dispatch_clip_grad(model.parameters(), value=1.0, mode="norm")
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
        ema.update(model, step=updates)
        losses.update(loss.item(), images.size(0))
        scheduler.step_update(num_updates=updates)
        if step % 20 == 0:
            print(epoch, step, losses.avg, flush=True)
    scheduler.step(epoch + 1)
