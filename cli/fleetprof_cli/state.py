"""The state directory of local mode: where the commands of one user find each other.

    hub.json     how to reach the hub (`HubRecord`); there while `fleetprof up` runs
    token        what every client and sidecar shows to the hub
    secret       what signs upload URLs of the directory store
    store.json   which object store the last `up` used, so that reports can be read when it is gone
    ports        the ports that `up` takes, kept so that a sidecar started before `up` finds it
    lock         held by the one `up` of this directory
    store/       the default object store
    runs/NAME/   one folder per `fleetprof run`: its sidecar's log and spool

Guarantees: the directory is 0700 and its secrets 0600; at most one `up` holds it; files are replaced whole.
"""

import fcntl
import os
import random
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.store import local

from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import StoreLocation

_LOOPBACK = "127.0.0.1"
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LEAST_PORT: Final = 10_000  # below are the ports of well-known services
_TRIES: Final = 100


class HubRecord(msgspec.Struct, kw_only=True, frozen=True):
    """`hub.json`: what a client needs beside the token."""

    address: str  # HOST:PORT of the gRPC server
    pid: int
    store: StoreLocation
    started_unix_ns: int
    ca_file: str = ""  # PEM file to check the server with; empty: plain text on loopback


class Ports(msgspec.Struct, kw_only=True, frozen=True):
    """`ports`: TCP ports on loopback that `up` takes when it is not told otherwise."""

    hub: int
    uploads: int


class StateDirectory:
    """One user's local mode. Creating the object touches nothing; `prepare` makes the directory."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.hub_file = self.path / "hub.json"
        self.token_file = self.path / "token"
        self.runs = self.path / "runs"
        self.default_store = local.default_store(self.path)

    def prepare(self) -> None:
        """Makes the directory, private. Raises Failure when it belongs to somebody else or cannot be made."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_uid != os.geteuid():
                raise Failure(
                    f"the state directory {self.path} belongs to another user",
                    next_step="choose another with --state or FLEETPROF_STATE",
                )
            self.path.chmod(0o700)
        except OSError as error:
            raise Failure(
                f"cannot use the state directory {self.path}: {error.strerror}",
                next_step="choose another with --state or FLEETPROF_STATE",
            ) from None

    def token(self) -> str:
        """The token, made at the first call."""
        self._secret_file(self.token_file)
        return self.token_file.read_text().strip()

    def upload_secret(self) -> bytes:
        """The key that signs upload URLs, made at the first call."""
        return self._secret_file(self.path / "secret").read_bytes().strip()

    def _secret_file(self, path: Path) -> Path:
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(32) + "\n")
        return path

    def ports(self) -> Ports:
        """The ports of this directory's hub, chosen at the first call, so that who comes first decides for all."""
        path = self.path / "ports"
        if not path.exists():
            _write_once(path, msgspec.json.encode(Ports(hub=choose_port(), uploads=choose_port())).decode())
        try:
            return msgspec.json.decode(path.read_bytes(), type=Ports)
        except (OSError, msgspec.DecodeError):
            path.unlink(missing_ok=True)
            raise Failure(f"{path} was damaged and has been removed", next_step="run the command again") from None

    def renew_ports(self, *, hub: int = 0) -> None:
        """Ports turned out to be taken by somebody else: keeps new ones, the hub's too unless `hub` names it."""
        ports = Ports(hub=hub or choose_port(), uploads=choose_port())
        _replace(self.path / "ports", msgspec.json.encode(ports).decode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the directory for one `up`. Raises Failure when another one holds it."""
        with (self.path / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise Failure(
                    f"`fleetprof up` already runs with this state directory (pid {file.read().strip() or 'unknown'})",
                    next_step=f"use it, stop it, or give this one another directory: --state DIR (now {self.path})",
                ) from None
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield

    def publish(self, record: HubRecord) -> None:
        """Tells the other commands where the hub is, and where the results lie when it has gone."""
        _replace(local.record(self.path), msgspec.json.encode(record.store).decode() + "\n")
        _replace(self.hub_file, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")

    def withdraw(self) -> None:
        """The hub is gone."""
        self.hub_file.unlink(missing_ok=True)

    def store(self) -> StoreLocation:
        """The object store of the last `up`, the default one when there was none."""
        return local.read_location(self.path)

    def hub(self) -> HubRecord | None:
        """Where the hub is, None when none was started here (or it left in the orderly way)."""
        try:
            return msgspec.json.decode(self.hub_file.read_bytes(), type=HubRecord)
        except (OSError, msgspec.DecodeError):
            return None


def port_is_free(host: str, port: int) -> bool:
    """Tells whether a server could listen there now."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def choose_port() -> int:
    """A free TCP port of loopback, one that the kernel gives to no connection as far as there are such."""
    ports = lasting_ports(*_ephemeral_ports())
    for port in random.sample(ports, min(len(ports), _TRIES)):
        if port_is_free(_LOOPBACK, port):
            return port
    with socket.create_server((_LOOPBACK, 0)) as server:
        last_resort: int = server.getsockname()[1]
        return last_resort


def lasting_ports(first_ephemeral: int, last_ephemeral: int) -> list[int]:
    """The ports that a server finds again after a break.

    The kernel gives one of the ephemeral range to whoever dials out: to any program, and to a sidecar that dials the
    very port where no hub listens at the moment, which then is connected to itself.
    """
    return [port for port in range(_LEAST_PORT, 1 << 16) if not first_ephemeral <= port <= last_ephemeral]


def _ephemeral_ports() -> tuple[int, int]:
    try:
        first, last = map(int, _EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        return 32768, 60999  # Linux's default
    return first, last


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


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with open(draft, "w", opener=_private) as file:
        file.write(text)
    draft.replace(path)
