"""The folder of one `fleetprof run` below the state directory.

Guarantees: it is 0700 and belongs to one run; a run that is alive holds its lock, so that others can tell; what a
finished run has not stored, or could not tell a hub, stays in its spool. The agent lies in it, where no other user can
ever put anything: a job's children may have it on PYTHONPATH for longer than the run lasts.
"""

import fcntl
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from fleetprof_cli.local.state import StateDirectory


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
        self.agent = path / "agent"
        self.log = path / "sidecar.log"
        self.hub_log = path / "hub.log"

    @contextmanager
    def hold(self, record: RunRecord) -> Iterator[None]:
        """Makes the folder and marks it alive; the lock goes with the process, however it ends.

        Raises OSError, and leaves nothing behind then.
        """
        with ExitStack() as cleanup:
            try:
                self.spool.mkdir(mode=0o700, parents=True)
                self.path.chmod(0o700)
                lock = cleanup.enter_context((self.path / "lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)  # at most somebody looks at it, for a moment
                (self.path / "run.json").write_bytes(msgspec.json.encode(record))
            except OSError:
                self.remove()
                raise
            yield

    def record(self) -> RunRecord | None:
        """The run's record of itself, None when it cannot be read."""
        try:
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=RunRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def is_alive(self) -> bool:
        """Tells whether its `fleetprof run` still runs."""
        return _is_locked(self.path / "lock")

    def is_served(self) -> bool:
        """Tells whether a sidecar works on its spool: one outlives a killed run until its uploads are through."""
        return _is_locked(self.spool / "lock")

    def unsent_bytes(self) -> int:
        """Size of the traces that wait in the spool."""
        return sum(file.stat().st_size for file in self.spool.rglob("*.gz") if file.is_file())

    def holds_captures(self) -> bool:
        """Tells whether the sidecar's journal has captures that no hub has released."""
        return any(self.spool.glob("journal/*.json"))

    def remove(self) -> None:
        """Deletes the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def new_run_folder(state: StateDirectory, name: str) -> RunFolder:
    """The path of a folder that does not exist yet; it is not created."""
    return RunFolder(state.runs / f"{name}-{secrets.token_hex(3)}")


def live_runs(state: StateDirectory) -> Iterator[RunRecord]:
    """The records of a state directory's runs that are alive."""
    for folder in run_folders(state):
        record = folder.record() if folder.is_alive() else None
        if record is not None:
            yield record


def run_folders(state: StateDirectory) -> list[RunFolder]:
    """All runs of a state directory, alive or not."""
    if not state.runs.is_dir():
        return []
    return [RunFolder(path) for path in sorted(state.runs.iterdir()) if path.is_dir()]
