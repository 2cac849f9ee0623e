"""Jobs of every kind end with captures as they end without us: the same exit code and the same results."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from harness.harmless.kinds import KINDS, PROGRAMS, Kind
from harness.ports import find_ports
from harness.training.local_job import LocalJob
from harness.training.local_system import Local
from harness.waiting import wait_until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]
PATIENCE_S = 240  # a machine that others keep busy


def find_words(kind: Kind, folder: Path) -> list[str]:
    """The command line of its job."""
    file, name = kind.program.split()
    port = str(find_ports(1)[0]) if "{port}" in "".join(kind.python) else ""
    python = [word.format(folder=folder, port=port) for word in kind.python]
    return [sys.executable, *python, str(PROGRAMS / f"{file}.py"), name]


def find_environment(kind: Kind, folder: Path) -> dict[str, str]:
    """The variables that its job finds set."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import os\nos.environ['OF_THE_JOB'] = '1'\n")
    own = {name: value.format(folder=folder) for name, value in kind.environment}
    if inherited := os.environ.get("PYTHONPATH", ""):
        own["PYTHONPATH"] = os.pathsep.join(filter(None, [own.get("PYTHONPATH"), inherited]))
    return {"JOB_STOP": str(folder / "stop"), "JOB_READY": str(folder / "ready"), "OMP_NUM_THREADS": "1"} | own


def read_results(output: str) -> list[str]:
    """The lines that must not change, in any order: ranks print when they are done."""
    return sorted(line for line in output.splitlines() if line.startswith("result "))


def run_alone(kind: Kind, folder: Path) -> tuple[int, list[str]]:
    """The end of the job without us."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FLEETPROF_", "KINETO_"))}
    environment |= find_environment(kind, folder)
    (folder / "stop").touch()
    result = subprocess.run(
        find_words(kind, folder),
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return result.returncode, read_results(result.stdout)


def run_with_captures(kind: Kind, folder: Path, hub: Local) -> tuple[int, list[str]]:
    """The end of the job beside our sidecar, with our agent in it, captured as often as its kind says."""
    words, environment = find_words(kind, folder), find_environment(kind, folder)
    job = hub.run_command(kind.name, *words, run_flags=("--linger", "5s", *kind.run), environment=environment)

    def is_over() -> bool:
        return job.process.poll() is not None

    wait_until(lambda: (folder / "ready").exists() or is_over(), f"{kind.name} to train", PATIENCE_S)
    trouble = threading.Thread(target=trouble_sidecar, args=(kind, job))
    trouble.start()
    for _ in range(kind.captures):
        if not is_over():
            collect = {"collect": list(kind.collect)} if kind.collect else {}
            hub.await_end(hub.submit(kind.name, iterations=3, deadline_s=30, **collect), PATIENCE_S)
    trouble.join()
    (folder / "stop").touch()
    try:
        code = job.process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{kind.name} does not end: {job.output.read_text()[-2000:]}")
    return code, read_results(job.output.read_text())


def trouble_sidecar(kind: Kind, job: LocalJob) -> None:
    """The fate of the sidecar meanwhile."""
    if kind.sidecar == "killed":
        for _ in range(4):
            time.sleep(2.2)
            os.kill(job.sidecar_pid(), signal.SIGKILL)
    elif kind.sidecar == "stopped":
        time.sleep(1.5)
        os.kill(stopped := job.sidecar_pid(), signal.SIGSTOP)
        time.sleep(15)
        os.kill(stopped, signal.SIGCONT)


def find_marks(kind: Kind) -> list[pytest.MarkDecorator]:
    """Marks it by when it runs, and by whether it is known to end otherwise."""
    harm = pytest.mark.xfail(reason="PyTorch's own doing: docs/limits.md", raises=AssertionError, strict=True)
    return [*([] if kind.always else [pytest.mark.nightly]), *([harm] if kind.is_harmed else [])]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a job still reaches as another user, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="fleetprof-harmless-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name, marks=find_marks(kind)) for kind in KINDS])
def test_a_job_ends_with_captures_as_it_ends_without_us(kind: Kind, hub: Local, folder: Path) -> None:
    if kind.package and not find_spec(kind.package):
        pytest.skip(f"needs {kind.package}")
    if kind.root and os.getuid():
        pytest.skip("needs root")
    alone = run_alone(kind, folder / "alone")
    assert alone[1], "it says nothing of itself"

    assert run_with_captures(kind, folder / "captured", hub) == alone
