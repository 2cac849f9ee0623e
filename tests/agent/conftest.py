"""Fixtures of the agent's tests: jobs in real interpreters, and the other end of their datagrams.

`python` runs over the interpreters that FLEETPROF_TORCH_PYTHONS names (os.pathsep between them; each has PyTorch), by
default the one that runs the tests.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_sidecar.sockets.directory import SocketDirectory
from harness.sidecar.agent_side import SidecarSide
from harness.training.agent_ground import PRELUDE, AgentGround

PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[AgentGround]:
    """A socket directory with everything a trainer needs, the other end of its sockets, and no job yet."""
    directory = tempfile.mkdtemp(prefix="fp", dir="/tmp")
    SocketDirectory(directory).prepare()
    side = SidecarSide(directory)
    made = AgentGround(directory, side, tmp_path)
    try:
        yield made
    finally:
        for job in made.jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGKILL)
            job.process.wait()
        side.close()
        shutil.rmtree(directory)


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that has PyTorch."""
    return str(request.param)


@pytest.fixture
def newest() -> str:
    """The first of them, for what is ours alone and the same on every PyTorch."""
    return PYTHONS[0]


@pytest.fixture
def prelude() -> str:
    """The beginning of every torch job: `iterate`, `make`, `is_stopped`."""
    return PRELUDE
