"""The folder of one `fleetprof run` below the state directory, and its short private socket directory.

Guarantees: both are 0700 and belong to one run; a run that is alive holds its folder's lock, so that others can tell;
what a finished run has not stored stays in its spool.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from fleetprof_cli.messages import Failure
from fleetprof_cli.state import StateDirectory

# The client's socket name has 52 characters and Kineto copies the path into 108 bytes without a check.
MAX_SOCKET_DIRECTORY: Final = 54


class RunRecord(msgspec.Struct, kw_only=True, frozen=True):
    """`run.json`: what `fleetprof doctor` and the next `fleetprof run` need to know of a run."""

    name: str
    namespace: str
    pid: int
    socket_directory: str
    started_unix_ns: int
    command: list[str]
    host_name: str = ""


class RunFolder:
    """runs/NAME-TOKEN/ of a state directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool = path / "spool"
        self.log = path / "sidecar.log"

    @contextmanager
    def hold(self, record: RunRecord) -> Iterator[None]:
        """Makes the folder and marks it alive; the lock goes with the process, however it ends."""
        self.spool.mkdir(mode=0o700, parents=True)
        self.path.chmod(0o700)
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.path / "run.json").write_bytes(msgspec.json.encode(record))
            yield

    def record(self) -> RunRecord | None:
        """What the run said of itself, None when it cannot be read."""
        try:
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=RunRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def is_alive(self) -> bool:
        """Tells whether its `fleetprof run` still runs."""
        try:
            with (self.path / "lock").open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def unsent_bytes(self) -> int:
        """Size of the traces that wait in the spool."""
        return sum(file.stat().st_size for file in self.spool.rglob("*.gz") if file.is_file())

    def remove(self) -> None:
        """Deletes the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def new_run_folder(state: StateDirectory, name: str) -> RunFolder:
    """A folder that nobody has; not made yet."""
    return RunFolder(state.runs / f"{name}-{secrets.token_hex(3)}")


def run_folders(state: StateDirectory) -> list[RunFolder]:
    """All runs of a state directory, alive or not."""
    if not state.runs.is_dir():
        return []
    return [RunFolder(path) for path in sorted(state.runs.iterdir()) if path.is_dir()]


def socket_directories() -> list[Path]:
    """All socket directories of this user that are there now."""
    return sorted(path for root in _socket_roots() for path in Path(root).glob(f"{_socket_prefix()}*") if path.is_dir())


def make_socket_directory() -> Path:
    """A private directory whose path is short enough. Raises Failure when none can be made.

    Not below $XDG_RUNTIME_DIR: the traces are written into it, and that is main memory.
    """
    for root in _socket_roots():
        prefix = _socket_prefix()
        if len(f"{root}/{prefix}") + 8 <= MAX_SOCKET_DIRECTORY and os.access(root, os.W_OK):
            return Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    raise Failure(
        f"no place for a socket directory of at most {MAX_SOCKET_DIRECTORY} characters: "
        f"{tempfile.gettempdir()} and /tmp cannot be used",
        next_step="set TMPDIR to a short, writable path",
    )


def _socket_roots() -> list[str]:
    # Real paths: Kineto's client ends its process over an answer whose path is not the very string it was given.
    return list(dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), "/tmp"))))  # noqa: S108 - mkdtemp is private


def _socket_prefix() -> str:
    return f"fp-{os.getuid()}-"
