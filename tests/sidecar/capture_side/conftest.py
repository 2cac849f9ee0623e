"""Fixtures of the capture side: a scripted hub with a store, traces as Kineto writes them, the sidecar as a process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from scripted_hub import HttpStore, ScriptedHub


def kineto_trace(trace_id: str, events: int = 3, padding: int = 0) -> bytes:
    """A trace with the frame that Kineto writes; `padding` bytes go into one event's arguments."""
    lines = [
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

    def __init__(self, command: list[str], output: Path, env: dict[str, str]) -> None:
        self._file = output.open("ab")
        self.output = output
        self._popen = subprocess.Popen(command, stdout=self._file, stderr=self._file, env=env)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def is_running(self) -> bool:
        return self._popen.poll() is None

    def end(self, number: int = signal.SIGTERM, patience_s: float = 60.0) -> int:
        if self.is_running():
            self._popen.send_signal(number)
        try:
            return self._popen.wait(patience_s)
        finally:
            if self.is_running():
                self._popen.kill()
                self._popen.wait()
            self._file.close()

    def wait(self, patience_s: float = 60.0) -> int:
        """The code that it ends with by itself."""
        return self._popen.wait(patience_s)

    async def leave(self) -> int:
        """Ends it in the orderly way, while the hub of this event loop goes on."""
        return await asyncio.to_thread(self.end)

    def text(self) -> str:
        return self.output.read_text(errors="replace")


@pytest.fixture
async def start_sidecar(
    hub: ScriptedHub, short_directory: str, tmp_path: Path
) -> AsyncIterator[Callable[..., Process]]:
    """Starts `fleetprof-sidecar` on the short directory, with a spool that stays between starts."""
    started: list[Process] = []

    def start(*more: str) -> Process:
        command = [
            *(sys.executable, "-m", "fleetprof_sidecar.main"),
            *("--directory", short_directory, "--spool", str(tmp_path / "spool")),
            *("--state", str(hub.state_directory), "--grace-seconds", "10"),
            *more,
        ]
        started.append(Process(command, tmp_path / "sidecar.log", {**os.environ, "PYTHONWARNINGS": "default"}))
        return started[-1]

    yield start
    for process in started:
        await process.leave()
    print((tmp_path / "sidecar.log").read_text(errors="replace") if started else "")


@pytest.fixture
def start_trainers(short_directory: str, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts simulated trainers on the short directory."""
    program = Path(__file__).parents[2] / "simulation" / "trainer.py"
    started: list[Process] = []

    def start(*more: str) -> Process:
        command = [sys.executable, str(program), "--directory", short_directory, *more]
        started.append(Process(command, tmp_path / "trainers.log", dict(os.environ)))
        return started[-1]

    yield start
    for process in started:
        process.end(signal.SIGTERM)
    print((tmp_path / "trainers.log").read_text(errors="replace") if started else "")
