"""Siblings of the ways of issue 40: other locks, other waits, other collectives. One rank is to blame for each."""

import asyncio
import ctypes
import fcntl
import http.server
import multiprocessing
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import torch.distributed as dist


def queue_empty(_: int) -> None:
    queue.Queue[int]().get()  # LINE:queue_empty


def process_lock(_: int) -> None:
    lock = multiprocessing.Lock()
    lock.acquire()
    lock.acquire()  # LINE:process_lock


def process_queue(_: int) -> None:
    multiprocessing.Queue().get()  # LINE:process_queue


def condition(_: int) -> None:
    one = threading.Condition()
    with one:
        one.wait()  # LINE:condition


def join_thread(_: int) -> None:
    other = threading.Thread(target=time.sleep, args=(600,), daemon=True)
    other.start()
    other.join()  # LINE:join_thread


def file_lock(_: int) -> None:
    with tempfile.NamedTemporaryFile() as file, open(file.name) as again:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(again, fcntl.LOCK_EX)  # LINE:file_lock


def socket_read(_: int) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    asks = socket.create_connection(listener.getsockname())
    asks.recv(1)  # LINE:socket_read


class _Silent(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(600)


def http_request(_: int) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}")  # LINE:http_request


def child_process(_: int) -> None:
    subprocess.run(["sleep", "600"], check=False)  # LINE:child_process


def fifo(_: int) -> None:
    path = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(path)
    with open(path) as file:  # LINE:fifo
        file.read()


def event_loop(_: int) -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    asyncio.run(forever())  # LINE:event_loop


def full_disk(_: int) -> None:
    while True:
        try:
            with open("/dev/full", "w") as file:
                file.write("x")
            return
        except OSError:
            time.sleep(5)  # LINE:full_disk


def holds_interpreter_and_sleeps(_: int) -> None:
    ctypes.PyDLL(None).sleep(600)


def object_gather(rank: int) -> None:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, rank)  # LINE:object_gather


def receives(rank: int) -> None:
    import torch

    dist.recv(torch.ones(4), src=0 if rank else 1)  # LINE:receives


def barrier(_: int) -> None:
    dist.barrier()  # LINE:barrier


def monitored_barrier(_: int) -> None:
    dist.monitored_barrier()  # LINE:monitored_barrier


MISMATCH = {"mismatched_collectives"}
SIBLINGS: dict[str, tuple[Callable[[int], Any], set[str], bool, int]] = {
    "queue_empty": (queue_empty, {"lock"}, True, 1),
    "process_lock": (process_lock, {"lock"}, True, 1),
    "process_queue": (process_queue, {"lock", "pipe"}, True, 0),
    "condition": (condition, {"lock"}, True, 1),
    "join_thread": (join_thread, {"lock"}, True, 0),
    "file_lock": (file_lock, {"file_lock"}, True, 1),
    "socket_read": (socket_read, {"network_read"}, True, 0),
    "http_request": (http_request, {"network_read"}, True, 1),
    "child_process": (child_process, {"child_process"}, True, 1),
    "fifo": (fifo, {"pipe", "blocked_in_line"}, True, 1),
    "event_loop": (event_loop, {"event_loop"}, True, 1),
    "full_disk": (full_disk, {"sleeps", "blocked_in_line"}, True, 1),
    "holds_interpreter_and_sleeps": (holds_interpreter_and_sleeps, {"interpreter_held"}, False, 1),
    "object_gather": (object_gather, MISMATCH, True, 1),
    "receives": (receives, {"message"}, True, 1),
    "barrier": (barrier, MISMATCH, True, 1),
    "monitored_barrier": (monitored_barrier, {"other_collective"}, True, 1),
}
