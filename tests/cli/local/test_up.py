"""`fleetprof up`: one per state directory, closed to the network without TLS, gone without a trace."""

import contextlib
import datetime
import os
import signal
import socket
import socketserver
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fleetprof_api.memory_shortage import HELPER
from fleetprof_cli.local.network import make_certificate
from fleetprof_cli.local.run.run_folder import run_folders
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.store_location import parse_store
from harness.forked import StartedCommand
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., StartedCommand]


def make_certificate_files(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1: (certificate file, key file)."""
    certificate, key = make_certificate("127.0.0.1", datetime.datetime.now(datetime.UTC))
    (folder / "cert.pem").write_bytes(certificate)
    (folder / "key.pem").write_bytes(key)
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_without_a_trace(hub: StartedCommand, state: StateDirectory, number: signal.Signals) -> None:
    assert {path.name for path in state.path.glob("*.sock")} == {"hub.sock", "uploads.sock"}
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in state.path.iterdir())
    hub.send_signal(number)
    assert hub.wait(60) == 0
    assert state.hub() is None
    assert list(state.path.glob("*.sock")) == []


def test_it_opens_no_port(hub: StartedCommand) -> None:
    inodes = {os.readlink(path) for path in Path(f"/proc/{hub.pid}/fd").iterdir() if path.is_symlink()}
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/{hub.pid}/net/{table}").read_text().splitlines()[1:]
        listening = {f"socket:[{fields[9]}]" for line in lines if (fields := line.split())[3] == "0A"}
        assert listening.isdisjoint(inodes)


def test_a_state_directory_with_a_long_name_works(
    fleetprof: Callable[..., Finished], start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    environment["FLEETPROF_STATE"] = str(deep)
    start("up", "--no-ui")
    wait_until(StateDirectory(deep).hub, "the hub")
    start("run", "--name", "here", "--", "sleep", "60")
    wait_until(lambda: '"name": "here"' in fleetprof("list", "-o", "json").stdout, "the sidecar")


def test_a_job_finds_the_hub_that_is_started_after_it_wherever_it_listens(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory
) -> None:
    start("run", "--no-hub", "--name", "here", "--", "sleep", "120")
    wait_until(lambda: (state.path / "runs").is_dir() and run_folders(state)[0].record(), "the job")
    for words in ([], ["--listen", "127.0.0.1:0"], []):
        hub = start("up", "--no-ui", *words)
        wait_until(lambda: '"name": "here"' in fleetprof("list", "-o", "json").stdout, f"the sidecar, {words}")
        hub.kill()  # its record stays, and leads to nothing
        hub.wait()


@pytest.mark.attack
def test_whoever_listens_where_the_hub_did_gets_no_token(start: Start, state: StateDirectory, tmp_path: Path) -> None:
    hub = start("up", "--no-ui", "--listen", "127.0.0.1:0")
    record = wait_until(state.hub, "the hub")
    hub.kill()
    hub.wait()
    heard = bytearray()
    handshakes: list[str] = []

    class Squatter(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["h2"])
            context.load_cert_chain(*make_certificate_files(tmp_path))
            try:
                with context.wrap_socket(self.request, server_side=True) as connection:
                    heard.extend(connection.recv(1000))
            except OSError as error:
                handshakes.append(str(error))

    port = int(record.address.rpartition(":")[2])
    with socketserver.TCPServer(("127.0.0.1", port), Squatter) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            start("run", "--no-hub", "--", "sleep", "60")
            wait_until(lambda: len(handshakes) >= 3, "the sidecar's dials")
        finally:
            server.shutdown()
            thread.join()
    assert heard == b""


@pytest.mark.attack
def test_who_speaks_no_tls_fills_no_log(start: Start, state: StateDirectory, tmp_path: Path) -> None:
    start("up", "--no-ui", "--listen", "127.0.0.1:0", log="up.log")
    record = wait_until(state.hub, "the hub")
    before = (tmp_path / "up.log").stat().st_size
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", int(record.address.rpartition(":")[2]))) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                connection.recv(100)
    assert (tmp_path / "up.log").stat().st_size < before + 1000


ANOTHER_USER = """
import errno, os, socket, sys
os.setgroups([]); os.setgid(12345); os.setuid(12345)
for name in ("hub.sock", "uploads.sock"):
    for act in (socket.socket.connect, socket.socket.bind):
        with socket.socket(socket.AF_UNIX) as tried:
            try:
                act(tried, name)
                print("did", act, name)
            except OSError as error:
                print(errno.errorcode[error.errno])
for name in ("token", "hub.json", "secret", "store"):
    try:
        os.listdir(name) if name == "store" else open(name).read()
        print("read", name)
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
@pytest.mark.parametrize("opened", [False, True], ids=["as it is", "opened by mistake"])
def test_another_user_reaches_nothing(hub: StartedCommand, state: StateDirectory, opened: bool) -> None:
    state.token()
    if opened:
        state.path.chmod(0o755)
    result = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER], cwd=state.path, capture_output=True, text=True, check=True, timeout=60
    )
    assert set(result.stdout.split()) <= {"EACCES", "EADDRINUSE"}
    assert result.stdout.count("EACCES") == 8 - result.stdout.count("EADDRINUSE") >= 6


@pytest.mark.attack
def test_the_kernel_prefers_an_analysis_to_a_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a store that does not answer."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = parse_store("s3://bucket/prefix", f"http://127.0.0.1:{silent.getsockname()[1]}")
        words = ["-m", "fleetprof_cli.local.analysis", msgspec.json.encode(store).decode(), "local", "uid"]
        process = subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL)
        try:
            score = Path(f"/proc/{process.pid}/oom_score_adj")
            wait_until(lambda: process.poll() is not None or int(score.read_text()) == HELPER, "its score")
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def test_a_second_one_is_refused(hub: StartedCommand, fleetprof: Callable[..., Finished]) -> None:
    result = fleetprof("up")
    assert result.returncode == 1
    assert f"already runs with this state directory (pid {hub.pid})" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--listen", "nowhere"], "must be HOST:PORT"),
        (["--tls-cert", __file__, "--tls-key", __file__], "--tls-cert needs --listen"),
        (["--store", "gs://x"], "must be a directory or s3://bucket/prefix"),
        (["--s3-endpoint", "http://h:1", "--store", "x"], "--s3-endpoint needs --store s3://"),
    ],
)
def test_a_wrong_command_line_is_code_2(fleetprof: Callable[..., Finished], words: list[str], message: str) -> None:
    result = fleetprof("up", *words)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_a_store_that_cannot_be_used_is_named(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = fleetprof("up", "--store", str(tmp_path / "file" / "store"))
    assert result.returncode == 1
    assert f"cannot use the store {tmp_path}/file/store" in result.stderr
    result = fleetprof("up", "--store", "/proc/store")
    assert result.returncode == 1
    assert "cannot use the store /proc/store" in result.stderr


def test_with_tls_commands_and_sidecars_find_it(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, tmp_path: Path
) -> None:
    certificate, key = make_certificate_files(tmp_path)
    start("up", "--no-ui", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
    wait_until(state.hub, "the hub")
    assert fleetprof("list", "-o", "json").returncode == 0
    start("run", "--name", "secret", "--", "sleep", "60")
    wait_until(lambda: '"name": "secret"' in fleetprof("list", "-o", "json").stdout, "the sidecar")


def test_a_key_that_does_not_fit_is_refused(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    certificate, _ = make_certificate_files(tmp_path)
    (tmp_path / "other").mkdir()
    _, key = make_certificate_files(tmp_path / "other")
    result = fleetprof("up", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
    assert result.returncode == 2
    assert "cannot be used together" in " ".join(result.stderr.split())
