"""A trainer that runs blocks of iterations on command, so that two of them can take turns on one core.

Reads one number of iterations per line, answers with one JSON list of their durations in ns. No fleetprof code.
"""

import json
import os
import sys
import time

import torch
from torch import nn


def main():
    os.sched_setaffinity(0, {int(sys.argv[1])})
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = int(sys.argv[2])
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(32, width)
    for line in sys.stdin:
        durations = []
        for _ in range(int(line)):
            begin = time.perf_counter_ns()
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            durations.append(time.perf_counter_ns() - begin)
        print(json.dumps(durations), flush=True)


if __name__ == "__main__":
    main()
