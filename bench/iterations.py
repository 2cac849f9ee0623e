"""A trainer that runs blocks of iterations on command, so that several of them can take turns on one core.

Says its pid first. Then reads one number of iterations per line, and answers with the block's wall time and the CPU
time of the whole process in it, Kineto's thread included (ns). No fleetprof code.
"""

import json
import os
import sys
import time

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = int(sys.argv[1])
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(32, width)
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(int(line)):
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        print(json.dumps([time.perf_counter_ns() - wall, time.process_time_ns() - cpu]), flush=True)


if __name__ == "__main__":
    main()
