"""Does independent pieces of work in several processes.

Guarantees: the results are those of one process; a process that is killed costs its own piece only; workers end with
the process that started them, however it ends; a single piece, or a single job, starts none.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def work_in_processes(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int
) -> Iterator[tuple[int, Result | None]]:
    """(position, result) of each piece, as they get ready, by `jobs` processes at most.

    None where the process that did it was killed. `work` is a function of a module; what it raises is raised here.
    """
    jobs = min(jobs, len(pieces))
    if jobs <= 1:
        for number, piece in enumerate(pieces):
            yield number, work(piece)
        return
    left = dict(enumerate(pieces))
    with _start(jobs) as pool:
        try:
            numbers = {pool.submit(work, piece): number for number, piece in left.items()}
            for done in as_completed(numbers):
                try:
                    result = done.result()
                except BrokenProcessPool:
                    continue
                del left[numbers[done]]
                yield numbers[done], result
        finally:
            pool.shutdown(cancel_futures=True)
    # Where one process is killed its pool ends: what it left is done one by one, to see whose piece kills.
    for number, piece in left.items():
        with _start(1) as pool:
            try:
                yield number, pool.submit(work, piece).result()
            except BrokenProcessPool:
                yield number, None


def _start(jobs: int) -> ProcessPoolExecutor:
    # The caller may have threads, so it is not forked.
    return ProcessPoolExecutor(jobs, get_context("spawn"), _begin)


def _begin() -> None:
    """In each worker: Ctrl-C ends it without words, and so does the end of its parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
