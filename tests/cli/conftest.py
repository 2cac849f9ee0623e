"""Fixtures of the command line's tests: a state directory, the command, and a hub with simulated trainers."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleetprof_cli.local.state import StateDirectory
from harness import forked
from harness.forked import StartedCommand
from harness.waiting import wait_until

SIMULATION = Path(__file__).parents[1] / "simulation" / "trainer.py"
Finished = subprocess.CompletedProcess[str]


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


@pytest.fixture
def sockets() -> Iterator[Path]:
    """The place of this test's socket directories: other tests of the same user make theirs in /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="fpt", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def environment(state: StateDirectory, sockets: Path) -> dict[str, str]:
    """This environment without what would change fleetprof, with the test's own state directory."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETPROF_", "KINETO_", "SLURM_"))}
    return clean | {"FLEETPROF_STATE": str(state.path), "COLUMNS": "100", "TMPDIR": str(sockets)}


@pytest.fixture
def fleetprof(environment: dict[str, str]) -> Callable[..., Finished]:
    """Runs one command to its end."""

    def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Finished:
        return forked.run("fleetprof_cli.main", ["fleetprof", *words], env or environment, cwd)

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., StartedCommand]]:
    """Starts a command beside the test, its output in a file; it is ended after the test.

    Those that import most are forked from a process that has done so.
    """
    started: list[StartedCommand] = []

    def begin(*words: str, log: str = "log") -> StartedCommand:
        if words[0] in ("up", "capture"):
            started.append(forked.start("fleetprof_cli.main", ["fleetprof", *words], environment, tmp_path / log))
            return started[-1]
        with (tmp_path / log).open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "fleetprof_cli.main", *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield begin
    for process in reversed(started):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def hub(start: Callable[..., StartedCommand], state: StateDirectory) -> StartedCommand:
    """`fleetprof up`, answering."""
    process = start("up", "--no-ui", log="up.log")
    wait_until(lambda: state.hub() is not None or process.poll() is not None, "the hub")
    assert process.poll() is None
    return process


@pytest.fixture
def job(
    hub: StartedCommand, start: Callable[..., StartedCommand], fleetprof: Callable[..., Finished]
) -> StartedCommand:
    """`fleetprof run` with four simulated trainers, known to the hub and stepping."""
    trainers = f'exec "{sys.executable}" "{SIMULATION}" --directory "$KINETO_IPC_SOCKET_DIR" --ranks 4 --poll-ms 300'
    process = start("run", "--name", "sim", "--", "bash", "-c", trainers, log="job.log")

    def stepping() -> bool:
        jobs = fleetprof("list", "-o", "json").stdout
        return jobs.count('"step": ') >= 4 and '"step": null' not in jobs

    wait_until(stepping, "four stepping ranks")
    return process
