"""Work for test_workers.py, in a module of its own since the workers import it by name."""

import os
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


def wait_for_ever(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)
