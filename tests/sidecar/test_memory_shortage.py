"""The kernel, when memory is short, takes the sidecar and what it starts, never the trainer beside them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleetprof_api.memory_shortage import HELPER, SERVICE
from fleetprof_sidecar.sockets.directory import KINETO_SOCKET

PATIENCE_S = 60.0


@pytest.fixture
def supervisor(short_directory: str, tmp_path: Path) -> Iterator[int]:
    """The first process of the sidecar's container, with the sidecar that it keeps running."""
    (tmp_path / "token").write_text("token")
    environment = os.environ | {
        "FLEETPROF_DIRECTORY": short_directory,
        "FLEETPROF_SPOOL": str(tmp_path / "spool"),
        "FLEETPROF_HUB": "127.0.0.1:9",
        "FLEETPROF_TOKEN_FILE": str(tmp_path / "token"),
    }
    command = [sys.executable, "-m", "fleetprof_sidecar.supervisor"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + PATIENCE_S
            while not (Path(short_directory) / KINETO_SOCKET).exists():
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.02)
            yield process.pid
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def read_score(pid: int) -> int:
    # In one read: between two the process may set another one, and the file is made anew for each.
    with Path(f"/proc/{pid}/oom_score_adj").open("rb", buffering=0) as file:
        return int(file.read(16))


@pytest.mark.attack
def test_the_kernel_prefers_the_sidecar_to_who_shares_its_machine(supervisor: int) -> None:
    (sidecar,) = map(int, Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split())
    own = read_score(os.getpid())
    assert (read_score(supervisor), read_score(sidecar)) == (max(own, SERVICE), max(own, SERVICE))


def compressing(folder: Path) -> list[str]:
    return ["fleetprof_sidecar.children.compress", str(folder / "out.gz"), "--limit-bytes=1000"]


def summarising(folder: Path) -> list[str]:
    os.mkfifo(folder / "trace")
    words = ["--rank=0", "--memory-bytes=1000000000", f"--parent={os.getpid()}"]
    return ["fleetprof_sidecar.children.summarise", str(folder / "trace"), *words]


@pytest.mark.attack
@pytest.mark.parametrize("work", [compressing, summarising])
def test_and_what_the_sidecar_starts_before_the_sidecar(work: Callable[[Path], list[str]], tmp_path: Path) -> None:
    """Each waits for its input, which does not come."""
    command = [sys.executable, "-m", *work(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            until = time.monotonic() + PATIENCE_S
            while read_score(process.pid) != HELPER:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
        finally:
            process.kill()
