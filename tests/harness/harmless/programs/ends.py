"""Trainings that end in the middle of a capture, each in a way of its own."""

import os
import signal
import sys
import threading
import time

from training import BESIDE, SteadyTraining, run_one, tell


def _is_captured() -> bool:
    """Tells whether PyTorch writes a trace at present."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").endswith(".json.tmp"):
                return True
        except OSError:
            continue
    return False


def _train_until_captured(end) -> None:
    tell("started")
    training = SteadyTraining(width=64)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        training.iterate()
        if _is_captured() if BESIDE else training.iterations > 50:
            break
    end()


def exits_at_once() -> None:
    _train_until_captured(lambda: os._exit(11))


def exits() -> None:
    _train_until_captured(lambda: sys.exit(12))


def raises() -> None:
    def fail():
        raise RuntimeError("as meant")

    _train_until_captured(fail)


def is_told_to_end() -> None:
    _train_until_captured(lambda: os.kill(os.getpid(), signal.SIGTERM))


def aborts() -> None:
    _train_until_captured(os.abort)


def crashes() -> None:
    _train_until_captured(lambda: os.kill(os.getpid(), signal.SIGSEGV))


def exits_in_a_thread() -> None:
    def end():
        threading.Thread(target=lambda: os._exit(13)).start()
        time.sleep(10)

    _train_until_captured(end)


def becomes_another_program() -> None:
    _train_until_captured(lambda: os.execv("/bin/sh", ["sh", "-c", "exit 14"]))


def becomes_itself_again() -> None:
    """Twice, as jobs do that change their environment."""
    generation = int(os.environ.get("GENERATION", "0"))
    training = SteadyTraining()
    for _ in range(150):
        training.iterate()
    if generation < 2:
        os.environ["GENERATION"] = str(generation + 1)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    tell(training.digest, generation)


if __name__ == "__main__":
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
