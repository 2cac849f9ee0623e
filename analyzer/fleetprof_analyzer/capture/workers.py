"""Does independent pieces of work in several processes.

Guarantees: the results are those of one process; a process that is killed costs its own piece only; workers end with
the process that started them, however it ends; a single piece, or a single job, starts none, and where none can be
started this process does all.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import Final, TypeVar

from fleetprof_api.memory_shortage import HELPER, go_first
from fleetprof_api.process.import_path import safe_starts

from fleetprof_analyzer.capture.memory import keep_freed_memory, limit_data

Piece = TypeVar("Piece")
Result = TypeVar("Result")
# Raised where the system has no semaphores (no /dev/shm), or lets this user have no more processes.
_NO_PROCESSES: Final = (OSError, RuntimeError)


def work_in_processes(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int, memory_bytes: int | None = None
) -> Iterator[tuple[int, Result | None]]:
    """(position, result) of each piece, as they get ready, by `jobs` processes of so many bytes each at most.

    None where the process that did it was killed. `work` is a function of a module; what it raises is raised here.
    """
    jobs = min(jobs, len(pieces))
    if jobs <= 1:
        for number, piece in enumerate(pieces):
            yield number, work(piece)
        return
    left = dict(enumerate(pieces))
    for number, result in _work_in_pool(work, left.copy(), jobs, memory_bytes):
        del left[number]
        yield number, result
    # Where one process is killed its pool ends: what it left is done one by one, to see whose piece kills.
    for number, piece in left.items():
        yield number, _work_alone(work, piece, memory_bytes)


def _work_in_pool(
    work: Callable[[Piece], Result], pieces: Mapping[int, Piece], jobs: int, memory_bytes: int | None
) -> Iterator[tuple[int, Result]]:
    """The results that come before a process is killed; none where no process can be started."""
    try:
        pool = _start(jobs, memory_bytes)
    except _NO_PROCESSES:
        return
    with pool:
        try:
            numbers: dict[Future[Result], int] = {}
            with suppress(*_NO_PROCESSES), safe_starts():
                for number, piece in pieces.items():
                    numbers[pool.submit(work, piece)] = number
            for future in as_completed(numbers):
                with suppress(BrokenProcessPool):
                    yield numbers[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _work_alone(work: Callable[[Piece], Result], piece: Piece, memory_bytes: int | None) -> Result | None:
    """By a process of its own, None where that is killed; by this one where none can be started."""
    try:
        pool = _start(1, memory_bytes)
    except _NO_PROCESSES:
        return work(piece)
    with pool:
        try:
            with safe_starts():
                future = pool.submit(work, piece)
        except _NO_PROCESSES:
            return work(piece)
        try:
            return future.result()
        except BrokenProcessPool:
            return None


def _start(jobs: int, memory_bytes: int | None) -> ProcessPoolExecutor:
    # The caller may have threads, so it is not forked.
    with safe_starts():
        return ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (memory_bytes,))


def _begin(memory_bytes: int | None) -> None:
    """In each worker: Ctrl-C ends it without words, and so does the end of its parent.

    Its memory is limited; where memory is short all the same, the kernel takes it before a trainer on this machine.
    """
    go_first(HELPER)
    limit_data(memory_bytes)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
