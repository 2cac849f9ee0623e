"""Processes that tests start often, forked from one that has imported what they need.

To import kopf, the Kubernetes client and pydantic takes longer than all that a command or an operator does in a test.
Guarantees: each is a process of its own, with its own environment, working directory and standard streams, and the
signals that any process has. What a program imports by itself, and when, is for tests that start it as users do.
"""

import atexit
import gc
import importlib
import io
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

_FORKS = multiprocessing.get_context("forkserver")
# Modules of the product alone: those of the tests it does not find, and leaves them out without a word.
_FORKS.set_forkserver_preload(
    [
        "fleetprof_operator.process",
        "fleetprof_operator.hub.storage.uploads",
        "fleetprof_cli.commands.local.capture",
        "fleetprof_cli.commands.installation.doctor",
        "fleetprof_cli.commands.local.list",
        "fleetprof_cli.commands.local.up",
        "fleetprof_cli.local.hub",
        "fleetprof_cli.commands.reports.report",
        "fleetprof_cli.kubernetes.commands.capture",
        "fleetprof_analyzer.capture.main",
        "fleetprof_store.s3.store",
        "fleetprof_sidecar.main",
    ]
)
# Of two threads that look after one process, one would read its exit code, and the other none.
_LOCK = threading.Lock()
# gRPC reads it when it is imported; `fleetprof up` sets it before.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
# So that its processor time counts as that of the tests.
atexit.register(forkserver._forkserver._stop)  # type: ignore[attr-defined]


def share() -> None:
    """Starts the process now, for all that will be forked from this one: they use it, and leave it running."""
    server: Any = forkserver._forkserver
    server.ensure_running()

    def use() -> None:
        # It is no child of theirs, whose end they could wait for.
        server._forkserver_pid = None
        server.ensure_running = lambda: None

    os.register_at_fork(after_in_child=use)


class StartedCommand(Protocol):
    """The handle of a process that goes on beside them, forked or not; as subprocess.Popen has it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""

    def wait(self, timeout: float | None = None, /) -> int:
        """Its exit code. Raises TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None:
        """Any signal."""

    def terminate(self) -> None:
        """SIGTERM."""

    def kill(self) -> None:
        """SIGKILL."""


class Forked:
    """A process that runs `act(*arguments)`, a function of a module; its end is that of the function."""

    def __init__(
        self,
        act: Callable[..., None],
        *arguments: Any,
        environment: Mapping[str, str],
        out: Path,
        error: Path,
        folder: Path | None = None,
    ) -> None:
        places = (dict(environment), str(folder or Path.cwd()), str(out), str(error))
        self._process: ForkServerProcess = _FORKS.Process(target=_play, args=(places, act, arguments))
        with _LOCK:
            self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        """Any signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, between any two instructions."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        with _LOCK:
            return self._process.exitcode

    def wait(self, patience_s: float | None = None) -> int:
        """Its exit code, as subprocess has it. Raises TimeoutExpired."""
        if not multiprocessing.connection.wait([self._process.sentinel], patience_s):
            raise subprocess.TimeoutExpired(str(self._process), patience_s or 0)
        with _LOCK:
            self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def run(
    module: str,
    words: Sequence[str | Path],
    environment: Mapping[str, str],
    folder: Path | None = None,
    patience_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Runs the program that is `main` of a module to its end, as subprocess.run does; `words` begin with its name."""
    with tempfile.TemporaryDirectory(prefix="fpt") as kept:
        out, error = Path(kept, "out"), Path(kept, "error")
        given = (module, [str(word) for word in words])
        process = Forked(_run_program, *given, environment=environment, out=out, error=error, folder=folder)
        try:
            code = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise
        return subprocess.CompletedProcess(given[1], code, out.read_text(), error.read_text())


def start(module: str, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
    """Starts the program that is `main` of a module in a session of its own; all that it prints goes to a file."""
    log.touch()
    return Forked(_lead_session, module, list(words), environment=environment, out=log, error=log)


def pipe() -> tuple[multiprocessing.connection.Connection, multiprocessing.connection.Connection]:
    """The ends to read and to write, for an argument of a process."""
    return _FORKS.Pipe(duplex=False)


def _play(places: tuple[dict[str, str], str, str, str], act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    environment, folder, out, error = places
    gc.freeze()  # to search what was imported for garbage is to copy it
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, _ADD), (2, error, _ADD)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), line_buffering=True)
    _use_kubeconfig(environment)
    act(*arguments)


_ADD = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def _use_kubeconfig(environment: Mapping[str, str]) -> None:
    """The Kubernetes client reads KUBECONFIG when it is imported."""
    from kubernetes.aio.config import kube_config

    place = Path(environment.get("HOME") or "/") / ".kube/config"
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = environment.get("KUBECONFIG", str(place))


def _lead_session(module: str, words: list[str]) -> None:
    os.setsid()
    _run_program(module, words)


def _run_program(module: str, words: list[str]) -> None:
    sys.argv = words
    importlib.import_module(module).main()
