"""The state directory of local mode: where the commands of one user find each other.

    hub.json     how to reach the hub (`HubRecord`); there while one runs
    token        what every client and sidecar shows to the hub
    secret       what signs upload URLs of the directory store
    store.json   which object store the last hub used, so that reports can be read when it is gone
    *.sock       where the hub listens, unless it listens on the network
    hub-*.pem    certificate and key that `up --listen` made for itself
    lock         held by the one hub of this directory (`hub_lock`)
    catalog-*    the web UI's index of a store
    store/       the default object store
    runs/NAME/   one folder per `fleetprof run`: its sidecar's log and spool, and the log of the hub that it started

Guarantees: the directory is 0700 and its secrets 0600; files are replaced whole.
"""

import errno
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.hub.local_hub import RECORD_FILE, TOKEN_FILE, HubRecord
from fleetprof_store import local

from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import StoreLocation

ANOTHER: Final = "choose another with --state or FLEETPROF_STATE"


class StateDirectory:
    """One user's local mode. Creating the object touches nothing; `prepare` makes the directory."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.hub_file = self.path / RECORD_FILE
        self.token_file = self.path / TOKEN_FILE
        self.runs = self.path / "runs"
        self.default_store = local.default_store(self.path)

    def prepare(self) -> None:
        """Makes the directory, private. Raises Failure when it belongs to somebody else or cannot be made."""
        with self.errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_uid != os.geteuid():
                raise Failure(f"the state directory {self.path} belongs to another user", next_step=ANOTHER)
            self.path.chmod(0o700)

    def find_obstacle(self) -> str:
        """The reason why it can be neither made nor written, in the operating system's words; empty where it can."""
        try:
            place = find_existing(self.path)
            if not place.is_dir():
                return f"{place}: {os.strerror(errno.ENOTDIR)}"
            if os.access(place, os.W_OK | os.X_OK):
                return ""
            return os.strerror(errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES)
        except OSError as error:
            return str(error.strerror or error)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """The operating system's errors as a Failure that names the directory and the next step."""
        try:
            yield
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise Failure(
                f"cannot use the state directory {self.path}: {error.strerror or error}",
                next_step=f"free some space on its volume, or {ANOTHER}" if is_full else ANOTHER,
            ) from None

    def token(self) -> str:
        """The token, made at the first call."""
        return self._secret_file(self.token_file).read_text().strip()

    def upload_secret(self) -> bytes:
        """The key that signs upload URLs, made at the first call."""
        return self._secret_file(self.path / "secret").read_bytes().strip()

    def certificate_files(self) -> tuple[Path, Path]:
        """The files in which a hub on the network keeps a certificate of its own making, and its key."""
        return self.path / "hub-cert.pem", self.path / "hub-key.pem"

    def write(self, path: Path, data: bytes) -> None:
        """Replaces a file of this directory, private."""
        with self.errors():
            replace_text(path, data.decode())

    def _secret_file(self, path: Path) -> Path:
        with self.errors():
            if not path.exists():
                _write_once(path, secrets.token_urlsafe(32) + "\n")
        return path

    def publish(self, record: HubRecord) -> None:
        """Tells the other commands where the hub is, and where the results lie when it has gone."""
        with self.errors():
            replace_text(local.record(self.path), msgspec.json.encode(record.store).decode() + "\n")
            replace_text(self.hub_file, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")

    def withdraw(self) -> None:
        """The hub is gone."""
        self.hub_file.unlink(missing_ok=True)

    def store(self) -> StoreLocation:
        """The object store of the last hub, the default one when there was none."""
        return local.read_location(self.path)

    def hub(self) -> HubRecord | None:
        """The address of the hub, None when none was started here (or it left in the orderly way)."""
        try:
            return msgspec.json.decode(self.hub_file.read_bytes(), type=HubRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def is_hub_alive(self) -> bool:
        """Tells whether the hub that was started here still runs; one on another machine is believed to."""
        record = self.hub()
        if record is None or record.host_name != socket.gethostname():
            return record is not None
        return Path(f"/proc/{record.pid}").exists()


def find_existing(path: Path) -> Path:
    """The path, or the part of it that is there. Raises OSError where that cannot be told."""
    while not os.path.lexists(path) and path != path.parent:
        path.exists()  # raises for a name that is too long, or a folder that nobody may look into
        path = path.parent
    return path


def _write_once(path: Path, text: str) -> None:
    """Creates a 0600 file whole; who loses a race keeps the winner's."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(draft, "x", opener=_private) as file:
            file.write(text)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def replace_text(path: Path, text: str) -> None:
    """Puts a file for its owner alone in place of the one that is there, at once."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(draft, "w", opener=_private) as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
