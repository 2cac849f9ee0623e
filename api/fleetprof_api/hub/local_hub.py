"""Helps the processes of one user to find the hub of local mode, and know that it is that user's.

    hub.json       how to reach it (`HubRecord`); there while one runs
    token          what every client and sidecar shows to it
    hub.sock       gRPC, unless it listens on the network
    uploads.sock   the signed PUTs, likewise

all in the state directory. Guarantees: the token goes to a socket in a directory that this user alone can write to, or
over TLS to who has the key of the certificate that is named there; never to whoever happens to listen at an address.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from fleetprof_store.location import StoreLocation

from fleetprof_api.errors import FleetprofError
from fleetprof_api.private_directory import NotPrivate, PrivateDirectory
from fleetprof_api.process.unix_peer import peer_uid

if TYPE_CHECKING:
    import grpc.aio

RECORD_FILE: Final = "hub.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - a file's name
HUB_SOCKET: Final = "hub.sock"
UPLOAD_SOCKET: Final = "uploads.sock"
UPLOAD_SCHEME: Final = "http+unix"
UPLOAD_URL: Final = f"{UPLOAD_SCHEME}://local"
"""Base of the URLs of parts that go to UPLOAD_SOCKET: which socket that is, the state directory tells, not the URL."""

_SOCKET_ADDRESS: Final = "unix:"
_CONNECT_TIMEOUT_S: Final = 10.0


class HubRecord(msgspec.Struct, kw_only=True, frozen=True):
    """`hub.json`: what a client needs beside the token."""

    address: str  # HOST:PORT of the gRPC server, or unix:PATH for people: clients look beside this file
    pid: int
    store: StoreLocation
    started_unix_ns: int
    ca_file: str = ""  # PEM file to check the server at HOST:PORT with
    host_name: str = ""  # of the machine that it runs on
    version: str = ""

    def is_socket(self) -> bool:
        """Tells whether it listens in the state directory, so for its own machine only."""
        return self.address.startswith(_SOCKET_ADDRESS)


class HubAway(FleetprofError, OSError):
    """No hub can be reached by what the state directory says; the message says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the hub that was looked at, good while the state directory is held open."""

    record: HubRecord
    target: str
    token: str
    authority: bytes | None  # PEM; None: a socket of our own user's, no TLS needed

    def open_channel(self, options: Sequence[tuple[str, Any]] = ()) -> "grpc.aio.Channel":
        """A channel, not yet connected."""
        import grpc
        import grpc.aio

        # The path names an open descriptor: a channel of before could have been for another directory.
        own = [*options, ("grpc.use_local_subchannel_pool", 1)]
        if self.authority is None:
            return grpc.aio.insecure_channel(self.target, options=[*own, ("grpc.default_authority", "localhost")])
        return grpc.aio.secure_channel(self.target, grpc.ssl_channel_credentials(self.authority), options=own)


@contextmanager
def find_hub(state: Path) -> Iterator[Way]:
    """The way to the hub of a state directory. Raises HubAway, NotPrivate, and OSError for files."""
    with _open_state(state) as directory:
        record = _read_record(directory)
        token = check_token(directory.read(TOKEN_FILE).decode(errors="replace"), state / TOKEN_FILE)
        if record.is_socket():
            try:
                target = directory.socket(HUB_SOCKET)
            except FileNotFoundError:
                raise HubAway(f"the hub's socket is gone from {str(state)!r}") from None
            yield Way(record, f"unix:{target}", token, None)
        else:
            yield Way(record, record.address, token, read_authority(record))


def connect_uploads(state: Path) -> socket.socket:
    """A connection to the upload server of this user's hub. Raises OSError."""
    with _open_state(state) as directory:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_CONNECT_TIMEOUT_S)
            connection.connect(directory.socket(UPLOAD_SOCKET))
            if peer_uid(connection) != os.geteuid():
                raise NotPrivate("another user's process listens at the socket for uploads")
        except OSError:
            connection.close()
            raise
    return connection


def find_upload_authority(state: Path) -> bytes | None:
    """The certificates that prove an upload server on the network; None when it listens at a socket. Raises OSError."""
    with _open_state(state) as directory:
        record = _read_record(directory)
        return None if record.is_socket() else read_authority(record)


def check_token(text: str, where: Path) -> str:
    """The token in a file's text. Raises ValueError when it is none."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"{where} holds no token")
    return token


def read_authority(record: HubRecord) -> bytes:
    """The certificates that a hub on the network is checked with. Raises HubAway, OSError."""
    if not record.ca_file:
        raise HubAway(f"no certificate is named for the hub at {record.address}; start it again")
    return Path(record.ca_file).read_bytes()


def _open_state(state: Path) -> PrivateDirectory:
    try:
        return PrivateDirectory(state)
    except FileNotFoundError:
        raise HubAway(f"no hub runs with the state directory {str(state)!r}") from None


def _read_record(directory: PrivateDirectory) -> HubRecord:
    try:
        return msgspec.json.decode(directory.read(RECORD_FILE), type=HubRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        raise HubAway(f"no hub runs with the state directory {str(directory.path)!r}") from None
