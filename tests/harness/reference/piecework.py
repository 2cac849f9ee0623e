"""Work for test_workers.py, in a module of its own since the workers import it by name."""

import os
import resource
import signal
import time
from pathlib import Path


def square(number: int) -> int:
    return number * number


def square_or_die(number: int) -> int:
    """7 is the piece that needs more memory than there is."""
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def refuse(number: int) -> int:
    raise ValueError(f"not {number}")


def process_of(_: int) -> int:
    return os.getpid()


def read_limits(_: int) -> tuple[int, int]:
    """The score by which the kernel chooses whom to end, and most bytes of data."""
    return int(Path("/proc/self/oom_score_adj").read_text()), resource.getrlimit(resource.RLIMIT_DATA)[0]


def take(size_bytes: int) -> int:
    try:
        return len(bytearray(size_bytes))
    except MemoryError:
        return -1


def wait_for_ever(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)
