"""A trainer puts links, pipes, devices and files of others into the directory that it shares with the sidecar."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_api.ledger import Reason
from fleetprof_sidecar.capture.events import FileChecked, FileRejected
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
from fleetprof_sidecar.captures.compression_queue import CompressionQueue
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.sockets.directory import SocketDirectory
from fleetprof_sidecar.sockets.shared_files import set_mode

NAME = "cap-r0_7.json"
SECRET = b'{"token": "of the sidecar"}'
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the sidecar's own, on the same volume."""
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces"
    path.mkdir(mode=0o777)
    return path


def compress(tmp_path: Path, traces: Path, uid: int = -1) -> FileChecked | FileRejected:
    spool = Spool(tmp_path / "spool", 1 << 24)
    terms = Terms(capture_id="cap", process_id="p", rank=0, first_step=1, uid=uid)
    capture = ProcessCapture(terms=terms, file_name=NAME, trace_bytes=1 << 20)
    try:
        return asyncio.run(CompressionQueue(spool, TracesDirectory(traces)).compress(capture, 1))
    finally:
        spool.close()


def plant_device(path: Path, _: Path) -> None:
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends


def plant_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(path))


PLANTED: list[tuple[str, Callable[[Path, Path], object], str]] = [
    ("link", lambda path, secret: path.symlink_to(secret), "not a regular file"),
    ("hard link", lambda path, secret: path.hardlink_to(secret), "2 names"),
    ("pipe", lambda path, _: os.mkfifo(path), "not a regular file"),
    ("socket", plant_socket, "not a regular file"),
    ("folder", lambda path, _: path.mkdir(), "not a regular file"),
    *([("device", plant_device, "not a regular file")] if IS_ROOT else []),
]


@pytest.mark.attack
@pytest.mark.parametrize(("what", "plant", "words"), PLANTED, ids=[what for what, _, _ in PLANTED])
def test_what_stands_in_a_traces_place_is_neither_read_nor_waited_for(
    tmp_path: Path, traces: Path, secret: Path, what: str, plant: Callable[[Path, Path], object], words: str
) -> None:
    plant(traces / NAME, secret)
    assert what == "hard link" or TracesDirectory(traces).scan() == []
    rejected = compress(tmp_path, traces)
    assert isinstance(rejected, FileRejected)
    assert rejected.reason == Reason.CORRUPT_TRACE
    assert words in rejected.message
    assert list((tmp_path / "spool/files").iterdir()) == []


@pytest.mark.attack
def test_a_file_of_another_user_is_nobodys_trace(
    tmp_path: Path, traces: Path, kineto_trace: Callable[..., bytes]
) -> None:
    (traces / NAME).write_bytes(kineto_trace("cap-r0"))
    assert isinstance(compress(tmp_path, traces, os.getuid()), FileChecked)
    rejected = compress(tmp_path, traces, os.getuid() + 1)
    assert isinstance(rejected, FileRejected)
    assert "belongs to user" in rejected.message


@pytest.mark.attack
def test_a_link_in_the_place_of_the_traces_leads_nowhere(
    tmp_path: Path, traces: Path, kineto_trace: Callable[..., bytes]
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / NAME).write_bytes(kineto_trace("cap-r0"))
    traces.rmdir()
    traces.symlink_to(private)
    directory = TracesDirectory(traces)
    assert directory.scan() == []
    assert not directory.delete(NAME)
    assert isinstance(compress(tmp_path, traces), FileRejected)
    assert (private / NAME).exists()


@pytest.mark.attack
def test_a_huge_file_with_nothing_in_it_is_given_up_at_once(tmp_path: Path, traces: Path) -> None:
    with (traces / NAME).open("wb") as file:
        file.truncate(1 << 40)
    rejected = compress(tmp_path, traces)
    assert isinstance(rejected, FileRejected)
    assert "no traceEvents in the first" in rejected.message


@pytest.fixture
def directory(short_directory: str) -> Path:
    return Path(short_directory)


@pytest.mark.attack
def test_preparing_the_directory_writes_through_no_link(directory: Path, tmp_path: Path, secret: Path) -> None:
    """Links under the very names, and under the temporary ones that a sidecar of an older version used."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "kept.py").write_text("kept")
    (directory / "libkineto.conf").symlink_to(secret)
    (directory / f".libkineto.conf.{os.getpid()}").symlink_to(secret)
    (directory / "traces").symlink_to(private)
    (directory / "agent").symlink_to(private)
    SocketDirectory(directory).prepare()
    assert (secret.read_bytes(), stat.S_IMODE(secret.stat().st_mode)) == (SECRET, 0o600)
    assert [path.name for path in private.iterdir()] == ["kept.py"]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for name in ("traces", "agent"):
        assert stat.S_ISDIR((directory / name).lstat().st_mode)
    assert stat.S_IMODE((directory / "traces").stat().st_mode) == 0o1777
    assert stat.S_ISREG((directory / "libkineto.conf").lstat().st_mode)

    (directory / "agent/fleetprof_agent/agent.py").unlink()
    (directory / "agent/fleetprof_agent/agent.py").symlink_to(secret)
    (directory / "agent/fleetprof_agent/old.py").symlink_to(private / "kept.py")
    (directory / "agent/__pycache__").symlink_to(private)
    SocketDirectory(directory).prepare()
    assert secret.read_bytes() == SECRET
    assert (private / "kept.py").read_text() == "kept"
    assert "class Agent" in (directory / "agent/fleetprof_agent/agent.py").read_text()
    assert not (directory / "agent/fleetprof_agent/old.py").is_symlink()


@pytest.mark.attack
@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user")
def test_an_agent_that_another_user_wrote_is_replaced(directory: Path) -> None:
    SocketDirectory(directory).prepare()
    module = directory / "agent/fleetprof_agent/agent.py"
    os.chown(module, 12345, 12345)
    SocketDirectory(directory).prepare()
    assert module.stat().st_uid == os.getuid()


@pytest.mark.attack
def test_a_mode_is_never_set_through_a_link(tmp_path: Path, secret: Path) -> None:
    """The trainer puts a link in the place of our socket, between our bind and our chmod."""
    (tmp_path / "dynolog").symlink_to(secret)
    with pytest.raises(OSError, match="is a link"):
        set_mode(tmp_path / "dynolog", 0o666)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.mark.attack
def test_garbage_is_a_socket_itself_and_no_link_to_one(directory: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(directory / "dynoconfigclientdead"))
    target = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(target))
    (directory / "dynoconfigclientlink").symlink_to(target)
    assert SocketDirectory(directory).collect_garbage() == 1
    assert target.exists()
