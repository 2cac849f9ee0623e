"""A trainer puts links or files of others into the directory that it shares with the sidecar."""

import os
import shutil
import socket
import stat
from pathlib import Path

import pytest
from fleetprof_sidecar.sockets.directory import SocketDirectory
from fleetprof_sidecar.sockets.shared_files import set_mode

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
    shutil.rmtree(directory / "agent/fleetprof_agent/samples")
    (directory / "agent/fleetprof_agent/samples").symlink_to(private)
    (directory / "agent/fleetprof_agent/old").symlink_to(private)
    (directory / "agent/__pycache__").symlink_to(private)
    SocketDirectory(directory).prepare()
    assert secret.read_bytes() == SECRET
    assert [path.name for path in private.iterdir()] == ["kept.py"]
    assert (private / "kept.py").read_text() == "kept"
    assert (directory / "agent/fleetprof_agent/samples/nvml.py").is_file()
    assert "class Agent" in (directory / "agent/fleetprof_agent/agent.py").read_text()
    assert not any((directory / "agent/fleetprof_agent" / name).is_symlink() for name in ("old.py", "old"))


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
