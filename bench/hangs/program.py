"""A job of some ranks that hangs after a few steps, in the way that its first argument names.

    torchrun --nproc-per-node 2 bench/hangs/program.py not_entered

`HANGS` has each way, with the cause that `fleetprof stacks` is to name and the marker of the line, if it has one.
"""

import collections
import io
import itertools
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

STEPS = 5
CULPRIT = 1
FOR_LONG_S = 600.0


class Slow(Dataset[torch.Tensor]):
    """Items that a worker gives until the hang begins."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= STEPS and self.way == "worker_stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if index >= STEPS and self.way == "worker_reads":
            wait_for_socket()
        return torch.ones(8)


def wait_for_socket() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(listener.getsockname()) as asks:
        asks.recv(1)  # LINE:network_read


def not_entered(rank: int) -> None:
    if rank == CULPRIT:
        time.sleep(FOR_LONG_S)  # LINE:not_entered


def mismatched(rank: int) -> None:
    if rank == CULPRIT:
        dist.broadcast(torch.ones(4), 0)  # LINE:mismatched
    else:
        dist.all_reduce(torch.ones(4))


def sleep_in_hook(rank: int) -> None:
    model = torch.nn.Linear(2, 2)
    if rank == CULPRIT:
        model.register_forward_hook(lambda *_: time.sleep(FOR_LONG_S))  # LINE:sleep_in_hook
    model(torch.ones(2))


def lock_held(rank: int) -> None:
    if rank == CULPRIT:
        lock = threading.Lock()
        holder = threading.Thread(target=lambda: lock.acquire() and time.sleep(FOR_LONG_S), daemon=True)
        holder.start()
        time.sleep(0.2)
        with lock:  # LINE:lock_held
            pass


def queue_empty(rank: int) -> None:
    if rank == CULPRIT:
        queue.Queue[int]().get()  # LINE:queue_empty


def loop(rank: int) -> None:
    count = 0
    while rank == CULPRIT:  # LINE:loop
        count += 1


def loop_in_extension(rank: int) -> None:
    if rank == CULPRIT:
        # One call in C that never lets the interpreter go, as a faulty extension does.
        collections.deque(itertools.repeat(1), maxlen=0)


def prompt(rank: int) -> None:
    if rank == CULPRIT:
        reader, _ = os.pipe()
        sys.stdin = os.fdopen(reader)
        breakpoint()


def stopped(rank: int) -> None:
    if rank == CULPRIT:
        os.kill(os.getpid(), signal.SIGSTOP)


def two_groups(rank: int) -> None:
    first, second = dist.new_group(), dist.new_group()
    for group in (first, second) if rank == CULPRIT else (second, first):
        dist.all_reduce(torch.ones(4), group=group)


def store_gone(rank: int) -> None:
    if rank == CULPRIT:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        store.wait(["never"])  # LINE:store_gone


def evaluation(rank: int) -> None:
    if rank == CULPRIT:
        evaluate()


def evaluate() -> None:
    model = torch.nn.Linear(512, 512)
    end = time.monotonic() + FOR_LONG_S
    with torch.no_grad():
        while time.monotonic() < end:
            model(torch.ones(512, 512))  # LINE:evaluation


class SlowFile(io.BytesIO):
    """A file system that does not answer."""

    def write(self, data: Any) -> int:
        time.sleep(FOR_LONG_S)
        return super().write(data)


def checkpoint(rank: int) -> None:
    if rank == CULPRIT:
        torch.save(torch.ones(4), SlowFile())  # LINE:checkpoint


def slow_iteration(_: int) -> None:
    """No hang: the job makes an iteration every four seconds from here on."""
    global PAUSE_S
    PAUSE_S = 4.0


PAUSE_S = 0.3
HANGS: dict[str, tuple[Callable[[int], Any] | None, set[str], bool]] = {
    # way: (what a rank does, causes that are right, whether a line is marked)
    "not_entered": (not_entered, {"blocked_in_line"}, True),
    "mismatched": (mismatched, {"mismatched_collectives"}, False),
    "sleep_in_hook": (sleep_in_hook, {"blocked_in_line"}, True),
    "worker_stopped": (None, {"loader_worker_stopped"}, False),
    "worker_reads": (None, {"data_loading"}, False),
    "lock_held": (lock_held, {"lock", "blocked_in_line"}, True),
    "queue_empty": (queue_empty, {"lock"}, True),
    "loop": (loop, {"loop"}, True),
    "loop_in_extension": (loop_in_extension, {"interpreter_held"}, False),
    "prompt": (prompt, {"debugger"}, False),
    "stopped": (stopped, {"stopped"}, False),
    "two_groups": (two_groups, {"deadlock"}, False),
    "store_gone": (store_gone, {"rendezvous", "blocked_in_line"}, True),
    "evaluation": (evaluation, {"loop"}, True),
    "checkpoint": (checkpoint, {"checkpoint"}, False),
    "slow_iteration": (slow_iteration, {"moves"}, False),
}


def main() -> None:
    way = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    in_worker = HANGS[way][0] is None
    data = DataLoader(Slow(way if rank == CULPRIT else ""), num_workers=1 if in_worker else 0)
    for step, item in enumerate(data):
        if step == STEPS and not in_worker:
            HANGS[way][0](rank)
        optimizer.zero_grad()
        model(item).sum().backward()
        optimizer.step()
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
