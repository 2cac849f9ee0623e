"""A trainer that runs blocks of iterations on command, so that several of them can take turns on one core.

    python bench/cost/iterations.py WIDTH BATCHES

An iteration is one optimizer step of a small model after BATCHES batches. Says its pid first. Then reads one line per
block, a number of iterations and "with" or "without" PyTorch's hooks for all optimizers (Kineto's and what was added to
it), and answers with the block's wall time and the CPU time of the whole process in it, Kineto's thread included (ns).
No fleetprof code.
"""

import json
import os
import sys
import threading
import time

import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width, batches = map(int, sys.argv[1:])
    # Every job has a thread beside that of its steps (NCCL's, gloo's, a data loader's); with one, locks are locked.
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(32, width)
    registered = dict(hooks)
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        count, hooked = line.split()
        hooks.clear()
        if hooked == "with":
            hooks.update(registered)
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(int(count)):
            for _ in range(batches):
                model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        print(json.dumps([time.perf_counter_ns() - wall, time.process_time_ns() - cpu]), flush=True)


if __name__ == "__main__":
    main()
