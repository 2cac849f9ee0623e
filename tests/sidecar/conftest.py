"""Fixtures of the sidecar's tests: simulated trainers, a scripted hub with a store, the sidecar as a process."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_sidecar.sockets import kineto_endpoint
from harness import forked
from harness.forked import StartedCommand
from harness.hub.scripted_hub import HttpStore, ScriptedHub
from harness.sidecar.kineto_client import Client
from harness.sidecar.process_world import World


@pytest.fixture
def short_directory() -> Iterator[str]:
    """A directory whose path fits beside Kineto's socket names; gone afterwards with all it holds."""
    path = tempfile.mkdtemp(prefix="fp", dir="/tmp")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def await_that() -> Callable[..., object]:
    """`await await_that(condition)`: returns its first true value; fails after a generous while."""

    async def wait(condition: Callable[[], object], patience_s: float = 30.0) -> object:
        end = time.monotonic() + patience_s
        while True:
            if value := condition():
                return value
            assert time.monotonic() < end, f"waited {patience_s} s in vain"
            await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def world() -> World:
    """A process table and the processes around it."""
    return World()


@pytest.fixture
def patient_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """These clients wait for 10 s: on a machine under load they get their answer all the same."""
    monkeypatch.setattr(kineto_endpoint, "ANSWER_WITHIN_NS", 10 * 10**9)


@pytest.fixture
def client(short_directory: str, patient_clients: None) -> Iterator[Callable[..., Client]]:
    """Makes clients of the directory's Kineto socket."""
    made: list[Client] = []

    def make(name: str = "") -> Client:
        made.append(Client(short_directory, name))
        return made[-1]

    yield make
    for one in made:
        one.close()


def kineto_trace(trace_id: str, events: int = 3, padding: int = 0) -> bytes:
    """A trace with the frame that Kineto writes; `padding` bytes go into one event's arguments."""
    lines: list[dict[str, Any]] = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"aten::op{i}",
            "pid": 1,
            "tid": 1,
            "ts": i,
            "dur": 1,
            "args": {"a": [[1]]},
        }
        for i in range(events)
    ]
    if lines and padding:
        lines[-1]["args"]["Call stack"] = "x" * padding
    document = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "trace_id": trace_id,
        "host_name": "h",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1,
        "traceEvents": lines,
        "traceName": "/d/a.json",
    }
    return json.dumps(document, indent=1).encode()


@pytest.fixture(name="kineto_trace")
def _kineto_trace() -> Callable[..., bytes]:
    return kineto_trace


@pytest.fixture
def http_store() -> Iterator[HttpStore]:
    store = HttpStore()
    yield store
    store.stop()


@pytest.fixture
def make_http_store() -> Iterator[Callable[[int], HttpStore]]:
    """Makes a store on a given port: one that comes back."""
    made: list[HttpStore] = []

    def make(port: int) -> HttpStore:
        made.append(HttpStore(port))
        return made[-1]

    yield make
    for store in made:
        store.stop()


@pytest.fixture
async def hub(http_store: HttpStore, tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    scripted = ScriptedHub(http_store, tmp_path / "state")
    await scripted.start()
    yield scripted
    await scripted.stop()


class Process:
    """A program of ours with its output in a file; killed at the end if it still runs."""

    def __init__(self, process: StartedCommand, output: Path) -> None:
        self.output = output
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self, number: int = signal.SIGTERM, patience_s: float = 60.0) -> int:
        if self.is_running():
            self._process.send_signal(number)
        try:
            return self._process.wait(patience_s)
        finally:
            if self.is_running():
                self._process.kill()
                self._process.wait()

    def wait(self, patience_s: float = 60.0) -> int:
        """The code that it ends with by itself."""
        return self._process.wait(patience_s)

    async def leave(self) -> int:
        """Ends it in the orderly way, while the hub of this event loop goes on."""
        return await asyncio.to_thread(self.end)

    def text(self) -> str:
        return self.output.read_text(errors="replace")


def start_program(command: list[str], output: Path) -> Process:
    """Starts any program; what it prints is added to a file."""
    with output.open("ab") as file:
        return Process(subprocess.Popen(command, stdout=file, stderr=file), output)


@pytest.fixture
async def start_sidecar(
    hub: ScriptedHub, short_directory: str, tmp_path: Path
) -> AsyncIterator[Callable[..., Process]]:
    """Starts `fleetprof-sidecar` on the short directory, with a spool that stays between starts.

    It is forked from a process that has imported it; `as_in_pods`: with an interpreter of its own.
    """
    started: list[Process] = []

    def start(*more: str, as_in_pods: bool = False) -> Process:
        words = [
            *("--directory", short_directory, "--spool", str(tmp_path / "spool")),
            *("--state", str(hub.state_directory), "--grace-seconds", "10"),
            *more,
        ]
        output = tmp_path / "sidecar.log"
        module = "fleetprof_sidecar.main"
        if as_in_pods:
            process = start_program([sys.executable, "-m", module, *words], output)
        else:
            process = Process(forked.start(module, [module, *words], os.environ, output), output)
        started.append(process)
        return process

    yield start
    for process in started:
        await process.leave()
    print((tmp_path / "sidecar.log").read_text(errors="replace") if started else "")


@pytest.fixture
def start_trainers(short_directory: str, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts simulated trainers on the short directory."""
    program = Path(__file__).parents[1] / "simulation" / "trainer.py"
    started: list[Process] = []

    def start(*more: str) -> Process:
        command = [sys.executable, str(program), "--directory", short_directory, *more]
        started.append(start_program(command, tmp_path / "trainers.log"))
        return started[-1]

    yield start
    for process in started:
        process.end(signal.SIGTERM)
    print((tmp_path / "trainers.log").read_text(errors="replace") if started else "")
