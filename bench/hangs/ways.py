"""The ways in which `program` hangs: those of issue 40 first, then siblings of each."""

import collections
import io
import itertools
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
import torch.distributed as dist
from siblings import SIBLINGS

FOR_LONG_S = 600.0


class Strikes(Enum):
    """The place in which a hang is planted: in the culprit's main thread, in its loader's worker, or in all ranks."""

    CULPRIT = "culprit"
    WORKER = "worker"
    ALL = "all"


@dataclass(frozen=True)
class PlantedHang:
    """`run` may return the pause of an iteration from then on. `blamed`: None: no rank is to blame."""

    run: Callable[[int], Any] | None
    causes: set[str]
    has_line: bool = True
    place: Strikes = Strikes.CULPRIT
    culprit: int = 1
    is_blamed: bool = True


def not_entered(_: int) -> None:
    time.sleep(FOR_LONG_S)  # LINE:not_entered


def mismatched(_: int) -> None:
    dist.broadcast(torch.ones(8 * 9), 0)  # LINE:mismatched


def mismatched_sizes(rank: int) -> None:
    dist.all_reduce(torch.ones(4 if rank == 1 else 4_000_000))


def sleep_in_hook(_: int) -> None:
    model = torch.nn.Linear(2, 2)
    model.register_forward_hook(lambda *_: time.sleep(FOR_LONG_S))  # LINE:sleep_in_hook
    model(torch.ones(2))


def wait_for_socket() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(listener.getsockname()) as asks:
        asks.recv(1)  # LINE:network_read


def produce(queue: Any) -> None:
    queue.put(1)
    queue.close()
    queue.join_thread()
    os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory is short


def producer_killed(_: int) -> None:
    """A loader of the job's own; PyTorch's notices by itself."""
    context = multiprocessing.get_context("fork")
    batches = context.Queue()
    context.Process(target=produce, args=(batches,), daemon=True).start()
    batches.get()
    batches.get()  # LINE:worker_killed


def lock_held(_: int) -> None:
    lock = threading.Lock()
    holder = threading.Thread(target=lambda: lock.acquire() and time.sleep(FOR_LONG_S), daemon=True)
    holder.start()
    time.sleep(0.2)
    with lock:  # LINE:lock_held
        pass


def loop(_: int) -> None:
    count = 0
    while True:  # LINE:loop
        count += 1


def loop_in_extension(_: int) -> None:
    # One call in C that never lets the interpreter go, as a faulty extension does.
    collections.deque(itertools.repeat(1), maxlen=0)


def prompt(_: int) -> None:
    reader, _writer = os.pipe()
    sys.stdin = os.fdopen(reader)
    breakpoint()  # LINE:prompt


def stopped(_: int) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def two_groups(rank: int) -> None:
    first, second = dist.new_group(), dist.new_group()
    for group in (first, second) if rank == 1 else (second, first):
        dist.all_reduce(torch.ones(4), group=group)


STORE = """
import sys, time
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
time.sleep(600)
"""


def store_gone(_: int) -> None:
    server = subprocess.Popen([sys.executable, "-c", STORE], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    store = dist.TCPStore("127.0.0.1", int(server.stdout.readline()), is_master=False, wait_for_workers=False)
    server.send_signal(signal.SIGSTOP)  # as its node is gone
    store.get("leader")  # LINE:store_gone


def evaluation(_: int) -> None:
    evaluate()


def evaluate() -> None:
    model = torch.nn.Linear(512, 512)
    end = time.monotonic() + FOR_LONG_S
    with torch.no_grad():
        while time.monotonic() < end:
            model(torch.ones(512, 512))  # LINE:evaluation evaluation_elsewhere


class SlowFile(io.BytesIO):
    """A file system that does not answer."""

    def write(self, data: Any) -> int:
        time.sleep(FOR_LONG_S)
        return super().write(data)


def checkpoint(_: int) -> None:
    torch.save(torch.ones(4), SlowFile())  # LINE:checkpoint


def go_on(_: int) -> None:
    pass


def slow_iteration(_: int) -> float:
    """No hang: the job makes an iteration every four seconds from here on."""
    return 4.0


WORKER_DIED = {"loader_worker_died"}
WAYS: dict[str, PlantedHang] = {
    "not_entered": PlantedHang(not_entered, {"sleeps", "blocked_in_line"}),
    "mismatched": PlantedHang(mismatched, {"mismatched_collectives"}),
    # gloo aborts the rank whose buffer is too small; with NCCL both would wait.
    "mismatched_sizes": PlantedHang(
        mismatched_sizes, {"mismatched_sizes", "rank_missing"}, has_line=False, place=Strikes.ALL
    ),
    "sleep_in_hook": PlantedHang(sleep_in_hook, {"sleeps", "blocked_in_line"}),
    "worker_killed": PlantedHang(producer_killed, WORKER_DIED),
    "worker_reads": PlantedHang(None, {"data_loading"}, place=Strikes.WORKER),
    "lock_held": PlantedHang(lock_held, {"lock"}),
    "loop": PlantedHang(loop, {"loop"}),
    "loop_in_extension": PlantedHang(loop_in_extension, {"interpreter_held"}, has_line=False),
    "prompt": PlantedHang(prompt, {"debugger"}),
    "stopped": PlantedHang(stopped, {"stopped"}, has_line=False),
    "killed": PlantedHang(killed, {"rank_missing"}, has_line=False),
    "two_groups": PlantedHang(two_groups, {"deadlock"}, has_line=False, place=Strikes.ALL, is_blamed=False),
    "store_gone": PlantedHang(store_gone, {"rendezvous"}),
    "evaluation": PlantedHang(evaluation, {"evaluation"}, culprit=0),
    "checkpoint": PlantedHang(checkpoint, {"checkpoint"}, has_line=False),
    "slow_iteration": PlantedHang(slow_iteration, {"moves"}, has_line=False, is_blamed=False),
    "no_optimizer": PlantedHang(go_on, {"moves"}, has_line=False, is_blamed=False),
    "worker_stopped": PlantedHang(None, {"loader_worker_stopped"}, place=Strikes.WORKER),
    # PyTorch's own loader ends the rank with an error.
    "loader_worker_killed": PlantedHang(None, {"rank_missing"}, has_line=False, place=Strikes.WORKER),
    "loader_worker_exits": PlantedHang(None, {"rank_missing"}, has_line=False, place=Strikes.WORKER),
    "evaluation_elsewhere": PlantedHang(evaluation, {"evaluation"}),
    **{
        name: PlantedHang(run, causes, has_line, culprit=culprit)
        for name, (run, causes, has_line, culprit) in SIBLINGS.items()
    },
}
