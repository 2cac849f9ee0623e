"""DeepSpeed with ZeRO-1 on gloo and two ranks, gradients accumulated over two micro-batches."""

import deepspeed
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
deepspeed.init_distributed("gloo")
engine, _, _, _ = deepspeed.initialize(
    model=model,
    model_parameters=model.parameters(),
    config={
        "train_micro_batch_size_per_gpu": 16,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": 1},
    },
)
for step in range(100_000):
    inputs, labels = torch.randn(16, 64), torch.randint(0, 10, (16,))
    loss = nn.functional.cross_entropy(engine(inputs), labels)
    engine.backward(loss)
    engine.step()
    if step % 100 == 0 and engine.global_rank == 0:
        print(step, loss.item(), flush=True)
