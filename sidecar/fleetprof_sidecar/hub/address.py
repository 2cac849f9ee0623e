"""The address of the hub, and its proof: a server on the network, or the one of local mode.

Guarantees: the token leaves this process only for a peer that proved who it is, by a certificate, or by a socket in a
directory that this user alone can write to. There is no way to send it in the clear.
"""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import grpc.aio
from fleetprof_api.hub import local_hub

_MAX_MESSAGE_BYTES: Final = 4 << 20
_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),
]


@dataclass(frozen=True, slots=True)
class Dialled:
    """The needs of one connection: a channel that is not connected yet, for the caller to close, and the token."""

    channel: grpc.aio.Channel
    token: str


class Address(Protocol):
    """The way to the hub; as a string it is for people."""

    @property
    def most_pause_s(self) -> float:
        """The longest pause between two dials."""

    def dial(self) -> AbstractContextManager[Dialled]:
        """The connection's parts, read anew each time. Raises OSError, ValueError."""

    def upload_authority(self) -> bytes | None:
        """The authorities that uploads trust beside the system's, PEM. Raises OSError."""

    def connect_uploads(self) -> socket.socket:
        """A connection to the upload server of local mode. Raises OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAddress:
    """A hub on the network, over TLS."""

    target: str  # host:port
    token_file: Path
    ca_file: Path | None = None  # None: the authorities that gRPC trusts by default
    name: str = ""  # in the hub's certificate, when `target` is an address

    most_pause_s = 30.0

    def __str__(self) -> str:
        return self.target

    @contextmanager
    def dial(self) -> Iterator[Dialled]:
        """The token is read anew each time: Kubernetes rotates it."""
        token = local_hub.check_token(self.token_file.read_text(), self.token_file)
        named = [("grpc.ssl_target_name_override", self.name)] if self.name else []
        credentials = grpc.ssl_channel_credentials(self.upload_authority())
        yield Dialled(grpc.aio.secure_channel(self.target, credentials, options=[*_OPTIONS, *named]), token)

    def upload_authority(self) -> bytes | None:
        """The hub's own."""
        return None if self.ca_file is None else self.ca_file.read_bytes()

    def connect_uploads(self) -> socket.socket:
        """There is none."""
        raise OSError("only the hub of local mode takes uploads at a socket")


@dataclass(frozen=True, slots=True)
class LocalHub:
    """The hub of a state directory, wherever that says it is by now: it may come, go and move while a job runs."""

    state: Path

    most_pause_s = 5.0  # a look at a file; who has just started `fleetprof up` waits for it

    def __str__(self) -> str:
        return f"state directory {self.state}"

    @contextmanager
    def dial(self) -> Iterator[Dialled]:
        """Good while the context is open."""
        with local_hub.find_hub(self.state) as way:
            yield Dialled(way.open_channel(_OPTIONS), way.token)

    def upload_authority(self) -> bytes | None:
        """That of the hub which is there now."""
        return local_hub.find_upload_authority(self.state)

    def connect_uploads(self) -> socket.socket:
        """To the socket beside the hub's."""
        return local_hub.connect_uploads(self.state)
