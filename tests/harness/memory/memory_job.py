"""A training job of a chosen shape, whose recordings need much memory: many small operators in each iteration.

    memory_job.py SHAPE --stop-when FILE [--pause S] [--holds MIB] [--reads FILE]

`--holds` keeps so much memory of its own; `--reads` reads a file again and again, so that it is in the page cache.
"""

import argparse
import os
import time

import torch


def make(shape: str) -> tuple[torch.nn.Module, torch.Tensor]:
    if shape == "layers":
        return torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(150)]), torch.randn(2, 4)
    if shape == "convolutions":
        blocks = [
            layer
            for _ in range(30)
            for layer in (torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
        ]
        return torch.nn.Sequential(*blocks), torch.randn(2, 4, 8, 8)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 6), torch.randn(2, 8, 32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=["layers", "convolutions", "transformer"])
    parser.add_argument("--stop-when", required=True)
    parser.add_argument("--pause", type=float, default=0, help="seconds between two iterations")
    parser.add_argument("--holds", type=int, default=0)
    parser.add_argument("--reads", default="")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    held = torch.ones(arguments.holds << 18)  # 4 bytes each
    model, batch = make(arguments.shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    while not os.path.exists(arguments.stop_when):
        model(batch).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(arguments.pause)
        if arguments.reads:
            with open(arguments.reads, "rb", buffering=0) as file:
                file.seek(int(time.time() * 997) % 1000 << 20)
                file.read(16 << 20)
    assert len(held) == arguments.holds << 18


if __name__ == "__main__":
    main()
