"""Workers of pytest-xdist, forked from one process that has imported all tests.

To import the tests and what they need is most of what a worker does before its first test, and each would do it again.
Guarantees: a worker is a process of its own, as pytest-xdist starts it; it collects by itself, and what cannot be
imported fails there. It ends when pytest does, however that ends.
"""

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

# Not as a script, which multiprocessing would run again in each process that it starts.
_START = (
    "import sys; sys.path.insert(0, {tests!r}); from harness.forked_workers import serve; serve({fd}, sys.argv[1:])"
)
# What pytest-xdist starts in the place of Python. Its end is that of the worker, whose socket then closes.
_STAND_IN = """\
import os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [sys.argv[-1].encode()], [0, 1, 2])
    os.closerange(0, 2)
    connection.recv(1)
"""


class WorkerSource:
    """The process that workers are forked from; for the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fpt")
        self._address = str(Path(self._folder.name, "workers"))
        stand_in = Path(self._folder.name, "stand_in.py")
        stand_in.write_text(_STAND_IN)
        self.python = shlex.join([sys.executable, "-I", "-S", str(stand_in), self._address])
        """What to start instead of Python."""
        words = [*map(str, config.invocation_params.args), "-n0", "--collect-only", "-qq", "-p", "no:cacheprovider"]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(64)
            start = _START.format(tests=str(Path(__file__).parents[1]), fd=listener.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", start, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )

    def stop(self) -> None:
        """Ends it, after the workers."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


class _NoTests:
    """Modules are imported, and nothing is made of what they contain but one test of Hypothesis.

    It reads then which constants our modules have.
    """

    def __init__(self) -> None:
        self._has_one = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[Any] | None:
        from hypothesis import is_hypothesis_test

        if is_hypothesis_test(obj) and not self._has_one:
            self._has_one = True
            return None
        return []


def serve(fd: int, words: Sequence[str]) -> None:
    """Imports what these words for pytest select; then forks a worker for each caller, until standard input ends.

    Returns in a worker when that ends.
    """
    sys.path.pop(0)
    sys.argv = ["-c"]
    pytest.main(list(words), plugins=[_NoTests()])
    assert threading.active_count() == 1, f"threads cannot be forked: {threading.enumerate()}"
    from harness import forked  # after pytest, which wants to import it itself

    forked.share()
    workers = []
    # Ctrl-C is for the workers.
    signals = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    with ExitStack() as cleanup:
        listener = cleanup.enter_context(socket.socket(fileno=fd))
        while fd in select.select([fd, 0], [], [])[0]:
            caller, _ = listener.accept()
            line, pipes, *_ = socket.recv_fds(caller, 1 << 16, 3)
            workers.append(os.fork())
            if workers[-1] == 0:
                listener.close()
                cleanup.pop_all()
                for number, action in signals.items():
                    signal.signal(number, action)
                _become_worker(line.decode(), pipes)
                return
            for each in pipes:
                os.close(each)
            caller.close()
    for worker in workers:
        os.waitpid(worker, 0)


def _become_worker(line: str, pipes: list[int]) -> None:
    for number, each in enumerate(pipes):
        os.dup2(each, number)
        os.close(each)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
    exec(line, {"__name__": "__main__"})  # what pytest-xdist gave its Python after -c
