"""The first process of the sidecar's container: it outlives its sidecar, hands the agent over, and ends when told."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 90.0
# A sidecar of a few lines: says that it started, leaves a socket behind, and does what its argument says.
SIDECAR = """
import os, signal, socket, sys, time
from fleetprof_sidecar.sockets.directory import KINETO_SOCKET
def end(*_):
    with open(os.environ["STARTS"], "a") as starts:
        starts.write("told to end\\n")
    os._exit(3)  # not sys.exit: what a handler raises is lost where Python ignores exceptions
signal.signal(signal.SIGTERM, end)
with open(os.environ["STARTS"], "a") as starts:
    starts.write(f"{os.getpid()}\\n")
path = os.environ["FLEETPROF_DIRECTORY"] + "/" + KINETO_SOCKET
if not os.path.exists(path):
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(path)
if sys.argv[1] == "crash":
    os._exit(1)
if sys.argv[1] == "orphan" and os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.1)
    os._exit(0)
while True:
    time.sleep(0.05)
"""
SUPERVISE = """
import os, sys
from fleetprof_sidecar import supervisor
from fleetprof_sidecar.sockets.directory import SocketDirectory
directory = SocketDirectory(os.environ["FLEETPROF_DIRECTORY"])
supervisor.Supervisor([sys.executable, os.environ["SIDECAR"], sys.argv[1]], directory).run()
"""


class Running:
    def __init__(self, process: "subprocess.Popen[bytes]", starts: Path) -> None:
        self.process = process
        self._starts = starts

    def starts(self) -> list[str]:
        return self._starts.read_text().split("\n")[:-1] if self._starts.exists() else []

    def await_that(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, self.starts()
            assert self.process.poll() is None
            time.sleep(0.01)


@pytest.fixture
def supervise(short_directory: str, tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    (tmp_path / "sidecar.py").write_text(SIDECAR)
    started = []

    def start(what: str) -> Running:
        environment = os.environ | {
            "FLEETPROF_DIRECTORY": short_directory,
            "SIDECAR": str(tmp_path / "sidecar.py"),
            "STARTS": str(tmp_path / "starts"),
        }
        process = subprocess.Popen([sys.executable, "-c", SUPERVISE, what], env=environment, stderr=subprocess.DEVNULL)
        started.append(process)
        return Running(process, tmp_path / "starts")

    yield start
    for process in started:
        process.terminate()
        process.wait(PATIENCE_S)


def test_a_sidecar_that_crashes_is_started_again(supervise: Callable[[str], Running]) -> None:
    running = supervise("crash")
    running.await_that(lambda: len(running.starts()) >= 3)
    assert len(set(running.starts())) == len(running.starts())
    assert running.process.poll() is None


def test_a_signal_ends_both_and_the_exit_code_is_good(supervise: Callable[[str], Running]) -> None:
    """Kubernetes would show a sidecar that ends otherwise as failed."""
    running = supervise("stay")
    running.await_that(lambda: bool(running.starts()))
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_S) == 0
    assert running.starts()[1:] == ["told to end"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(running.starts()[0]), 0)


def test_a_signal_between_two_starts_ends_it_at_once(supervise: Callable[[str], Running]) -> None:
    running = supervise("crash")
    running.await_that(lambda: len(running.starts()) >= 3)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_S) == 0


def test_the_agent_is_there_before_the_sidecar(supervise: Callable[[str], Running], short_directory: str) -> None:
    running = supervise("stay")
    running.await_that(lambda: bool(running.starts()))
    assert (Path(short_directory) / "agent/fleetprof_agent/agent.py").is_file()
    assert (Path(short_directory) / "traces").is_dir()


def test_no_stale_socket_stays_to_delay_a_trainers_exit(
    supervise: Callable[[str], Running], short_directory: str
) -> None:
    running = supervise("crash")
    running.await_that(lambda: bool(running.starts()))
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_S) == 0
    assert not (Path(short_directory) / "dynolog").exists()


def test_orphans_are_not_taken_for_the_sidecar(supervise: Callable[[str], Running]) -> None:
    running = supervise("orphan")
    running.await_that(lambda: bool(running.starts()))
    time.sleep(0.3)
    assert running.process.poll() is None
    assert len(running.starts()) == 1


def test_it_loads_neither_grpc_nor_protobuf() -> None:
    code = "import sys, fleetprof_sidecar.supervisor; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"grpc", "google", "msgspec", "urllib3"} & set(result.stdout.split())


def test_help_is_printed_once() -> None:
    words = [sys.executable, "-m", "fleetprof_sidecar.supervisor", "--help"]
    result = subprocess.run(words, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("usage: ") == 1


def test_wrong_settings_are_tried_again_rather_than_ending_the_container(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLEETPROF_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetprof_sidecar.supervisor"], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "ended with 2" in line:
                break
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_socket_that_somebody_serves_is_not_taken_away(short_directory: str) -> None:
    from fleetprof_sidecar.sockets.directory import SocketDirectory

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as served:
        served.bind(f"{short_directory}/dynolog")
        SocketDirectory(short_directory).close()
        assert (Path(short_directory) / "dynolog").exists()
