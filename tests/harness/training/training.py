"""A small training job with switches for the faults that the end-to-end tests plant. Knows nothing of fleetprof.

One process trains alone; under torchrun the ranks train together over gloo. Each iteration waits `--pause` seconds for
its "data": four ranks that do not pause take two cores for themselves.
"""

import argparse
import os
import signal
import sys
import time

if os.environ.get("DEAF_RANK") == os.environ.get("RANK", "0"):
    # Kineto reads this once, at the import: a rank that nobody can reach through it.
    os.environ.pop("KINETO_USE_DAEMON", None)

if "HOLD_IMPORT" in os.environ:
    import held_import

    held_import.hold(os.environ["HOLD_IMPORT"])

if os.environ.get("WITH_COMPILER") != "whole":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # isolated Python leaves it out
    import no_compiler  # noqa: F401

import torch
from torch import nn


class Batches(torch.utils.data.Dataset):
    def __init__(self, starve_when: str | None) -> None:
        self.starve_when = starve_when

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.starve_when and index % 8 == 0 and os.path.exists(self.starve_when):
            time.sleep(0.8)
        return torch.full((16,), float(index % 7))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000, help="iterations before the job ends by itself")
    parser.add_argument("--seconds", type=float, default=120, help="the job ends by itself after this long")
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--load", type=float, default=0, help="seconds before the first iteration")
    parser.add_argument("--optimizers", type=int, default=1)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", choices=["none", "fork", "spawn"], default="none")
    parser.add_argument("--no-optimizer", action="store_true")
    parser.add_argument("--no-group", action="store_true", help="ranks train each for itself")
    parser.add_argument("--fault", choices=["exit", "raise", "abort", "kill", "term", "hang"])
    parser.add_argument("--fault-rank", type=int, default=0)
    parser.add_argument("--fault-when", help="the fault strikes once this file is there")
    parser.add_argument("--progress", help="touched after the fifth iteration, one file per rank")
    parser.add_argument("--stop-when", help="the job ends in the orderly way once this file is there")
    parser.add_argument("--starve-when", help="each iteration waits long for its data while this file is there")
    return parser.parse_args()


def strike(fault: str) -> None:
    if fault == "exit":
        sys.exit(7)
    if fault == "raise":
        raise RuntimeError("planted")
    if fault == "abort":
        os.abort()
    if fault == "hang":
        time.sleep(3600)
    os.kill(os.getpid(), signal.SIGKILL if fault == "kill" else signal.SIGTERM)
    time.sleep(60)


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    world_size = 1 if arguments.no_group else int(os.environ.get("WORLD_SIZE", "1"))
    model: nn.Module = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    groups = [list(model.parameters())[i :: arguments.optimizers] for i in range(arguments.optimizers)]
    optimizers = [torch.optim.SGD(group, lr=1e-3) for group in groups]
    loader = torch.utils.data.DataLoader(
        Batches(arguments.starve_when),
        batch_size=8,
        num_workers=0 if arguments.workers == "none" else 2,
        multiprocessing_context=None if arguments.workers == "none" else arguments.workers,
    )
    time.sleep(arguments.load)
    batches = iter(loader)
    begin = time.monotonic()
    ends = False
    for step in range(arguments.steps):
        for _ in range(arguments.accumulate):
            batch = next(batches)
            time.sleep(arguments.pause)
            loss = (model(batch) - batch).square().mean()
            loss.backward()
        if arguments.no_optimizer:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 1e-3 * parameter.grad
            model.zero_grad()
        for optimizer in () if arguments.no_optimizer else optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step == 5 and arguments.progress:
            open(f"{arguments.progress}.{rank}", "w").close()
        if arguments.fault and rank == arguments.fault_rank and os.path.exists(arguments.fault_when):
            os.remove(arguments.fault_when)  # once: a restarted worker trains on
            strike(arguments.fault)
        if step % 10 == 0:
            over = time.monotonic() - begin > arguments.seconds
            has_stop_file = bool(arguments.stop_when) and os.path.exists(arguments.stop_when)
            ends = over or has_stop_file
            if world_size > 1:  # all ranks leave together
                flag = torch.tensor(float(ends))
                torch.distributed.all_reduce(flag)
                ends = bool(flag)
        if ends:
            break
    if world_size > 1:
        # PyTorch 2.15 with gloo ends by SIGABRT in one of 24 runs, without us too, when ranks leave while others talk.
        torch.distributed.barrier()
        time.sleep(0.5)
        torch.distributed.destroy_process_group()
        time.sleep(0.5)
    sys.stdout.write(f"rank {rank} ended after {step + 1} iterations\n")  # one write: lines of ranks do not mix


if __name__ == "__main__":
    main()
