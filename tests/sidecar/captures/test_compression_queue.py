"""A trainer puts links, pipes, devices or files of others where the sidecar expects a trace to compress."""

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

NAME = "cap-r0_7.json"


IS_ROOT = os.geteuid() == 0


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the sidecar's own, on the same volume."""
    path = tmp_path / "secret"
    path.write_bytes(b"of the sidecar")
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
