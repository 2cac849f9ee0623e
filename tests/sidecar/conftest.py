"""Fixtures of the sidecar's tests: short directories (socket paths are limited), simulated trainers."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from fleetprof_sidecar import kineto_endpoint
from kineto_client import Client
from process_world import World


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
