"""A small DDP model on gloo with one planted fault: torchrun planted_job.py; knows nothing of us.

PLANT: the fault, of CASES in planted_truth.py. PLANT_RANK: its rank. PLANT_FOLDER: a folder for its files; the job
ends when `stop` is there. Each rank writes into `queue-RANK` how long it has waited for a core, after each iteration:
what other programs do to a healthy job is no false alarm. Lines that end in `# planted: FAULT` hold that fault:
planted_truth.py reads them.
"""

from __future__ import annotations

import gc
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FAULT = os.environ.get("PLANT", "none")
CULPRIT = int(os.environ.get("PLANT_RANK", "0"))
FOLDER = Path(os.environ["PLANT_FOLDER"])
PAUSE_S = 0.04
WIDTH, BATCH, LENGTH = 128, 4, 32
START = 20  # iterations until all is warm
EVERY = 3  # iterations from checkpoint to checkpoint

dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
HAS_FAULT = RANK == CULPRIT


def is_here(fault: str) -> bool:
    return HAS_FAULT and fault == FAULT


class Samples(Dataset):
    """Random sequences; slow, from a disk, or longer where that is planted."""

    def __len__(self) -> int:
        return 10**7

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        if is_here("loader") or FAULT == "slow_everywhere":
            time.sleep(PAUSE_S / BATCH)  # planted: loader slow_everywhere
        if is_here("disk") and number % BATCH == 0:
            read_disk()  # planted: disk
        length = 4 * LENGTH if is_here("longer") else LENGTH
        return torch.randn(length, WIDTH), number % 10  # planted: longer


def read_disk() -> None:
    descriptor = os.open(FOLDER / "large.bin", os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(descriptor, 1 << 16):  # planted: disk
        pass
    os.close(descriptor)


def generate() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches without a DataLoader."""
    samples, number = Samples(), 0
    while True:
        rows = [samples[number + one] for one in range(BATCH)]
        number += BATCH
        if is_here("generator"):
            time.sleep(PAUSE_S)  # planted: generator
        yield torch.stack([row for row, _ in rows]), torch.tensor([label for _, label in rows])


def burn_core(core: int) -> None:
    """A process that takes the core for as long as this one lives."""
    parent = os.getpid()
    if os.fork() == 0:
        os.sched_setaffinity(0, {core})
        while os.getppid() == parent:
            sum(range(20_000))
        os._exit(0)


def share_cores() -> None:
    """The culprit has one core, with hogs; the others have the rest, which on two cores is one for all of them."""
    cores = sorted(os.sched_getaffinity(0))
    if HAS_FAULT:
        os.sched_setaffinity(0, cores[-1:])
        for _ in range({"busy_core": WORLD - 1, "contention": WORLD + 2}[FAULT]):
            burn_core(cores[-1])
    else:
        os.sched_setaffinity(0, cores[:-1] or cores)


def work_in_python() -> int:
    total = 0
    for number in range(600_000):
        total += number & 7  # planted: python
    return total


def read_numbers(model: torch.nn.Module, log) -> None:
    for parameter in model.parameters():
        for _ in range(12):
            print(parameter.grad.norm().item(), parameter.abs().max().item(), file=log)  # planted: item
            print(parameter.grad.std().item(), file=log)  # planted: item


def save_checkpoint(model: torch.nn.Module) -> None:
    torch.save(model.state_dict(), FOLDER / "checkpoint.pt")  # planted: checkpoint
    time.sleep(2 * PAUSE_S)  # planted: checkpoint


def pause_backward(gradient: torch.Tensor) -> torch.Tensor:
    time.sleep(PAUSE_S)  # planted: backward_hook
    return gradient


def make_garbage() -> list[list]:
    rings = []
    for _ in range(400_000):
        ring: list = []
        ring.append(ring)
        rings.append(ring)
    return rings


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = torch.nn.Linear(WIDTH, 10)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(rows)[0])


class Convolutions(torch.nn.Module):
    """A picture of each sequence; of 32 rows and more."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, stride=2), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10),
        )  # fmt: skip

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows.unsqueeze(1)).unsqueeze(1)


def make_net() -> torch.nn.Module:
    """A transformer, which has all faults, or another model without one."""
    if FAULT == "recurrent_none":
        return Recurrent()
    if FAULT == "convolutions_none":
        return Convolutions()
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True), 2,
        enable_nested_tensor=False,
    )  # fmt: skip
    return torch.nn.Sequential(encoder, torch.nn.Linear(WIDTH, 10))


def waited_ns() -> int:
    """The time that this thread has been ready to run without a core, as the kernel counts it."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if is_here("disk"):
        (FOLDER / "large.bin").write_bytes(os.urandom(64 << 20))
    net = make_net()
    if is_here("backward_hook"):
        net[1].weight.register_hook(pause_backward)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    criterion = torch.nn.CrossEntropyLoss()
    batches = generate() if FAULT.startswith("generator") else iter(DataLoader(Samples(), batch_size=BATCH))
    kept = make_garbage() if is_here("collect") else []  # noqa: F841 - it is looked through
    log = open(FOLDER / f"log-{RANK}", "w")  # noqa: SIM115 - it is written until the end
    queue = open(FOLDER / f"queue-{RANK}", "w", buffering=1)  # noqa: SIM115
    stop, number = torch.zeros(1), 0
    while True:
        inputs, labels = next(batches)
        loss = criterion(model(inputs).mean(1), labels)
        loss.backward()
        if is_here("item"):
            read_numbers(net, log)
        if is_here("collect"):
            gc.collect()  # planted: collect
        optimizer.step()
        optimizer.zero_grad()
        number += 1
        queue.write(f"{time.time_ns()} {waited_ns()}\n")
        if is_here("hash"):
            for _ in range(3):
                hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 25_000)  # planted: hash
        if is_here("python"):
            work_in_python()  # planted: python
        if is_here("checkpoint") and number % EVERY == 0:
            save_checkpoint(net)
        if FAULT == "rotating" and number % WORLD == RANK:
            time.sleep(PAUSE_S)  # planted: rotating
        if number == START and FAULT in ("busy_core", "contention"):
            share_cores()
        if number % START == 0:
            stop[0] = (FOLDER / "stop").exists()
            dist.broadcast(stop, 0)
            if stop.item():
                break
            if RANK == 0:
                (FOLDER / "progress").write_text(str(number))
    dist.destroy_process_group()


main()
