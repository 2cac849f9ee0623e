"""A Unix datagram socket in the shared directory, served by a thread that does nothing else, and the gate before it.

Guarantees: the socket is bound to an absolute path (libkineto terminates a process that is answered from anything
else), world-writable, and carries the sender's credentials; each wake-up drains it completely, because the kernel
queues ten datagrams and makes further senders fail; a handler that raises is counted and the loop goes on; the path is
removed at the end if it is still ours. What passes the gate is well-formed, and comes from a socket of this very
directory string and from a user who is served; everything else is counted by why it was not let in.
"""

import contextlib
import os
import re
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from fleetprof_api.errors import FleetprofError

from fleetprof_sidecar.profiler import Credentials
from fleetprof_sidecar.sockets.liveness import has_listener
from fleetprof_sidecar.sockets.shared_files import set_mode

_CREDENTIALS: Final = struct.Struct("=iII")
_TIMESTAMP: Final = struct.Struct("=qq")
_SO_TIMESTAMPNS: Final = 35  # asm-generic/socket.h; the socket module has no name for it
_WAKE_S: Final = 60.0

_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_TIMESTAMP.size)

_Message = TypeVar("_Message")


class SocketInUse(FleetprofError, OSError):
    """Another sidecar serves this directory."""


@dataclass(frozen=True, slots=True)
class Datagram:
    """One datagram. `address` is "" when the sender has none that could be answered.

    `sent_unix_ns`: the sender's call, as the kernel noted it; where it does not say, when the datagram was received.
    """

    data: bytes
    address: str
    credentials: Credentials
    sent_unix_ns: int

    def age_ns(self) -> int:
        """The time that its sender has been waiting."""
        return max(0, time.time_ns() - self.sent_unix_ns)


class DatagramGate(Generic[_Message]):
    """Lets in what `parse` takes (it raises ValueError) from sockets named `<directory>/<prefix><token>`.

    `allowed_uids`: whose processes are served; None: everybody who can write in the directory. `counters` gets
    foreign_address, refused_uid and malformed.
    """

    def __init__(
        self,
        directory: str,
        prefix: str,
        allowed_uids: frozenset[int] | None,
        parse: Callable[[bytes], _Message],
        counters: Counter[str],
    ) -> None:
        self._address = re.compile(re.escape(f"{directory}/{prefix}") + "[A-Za-z0-9_-]{1,64}")
        self._allowed_uids = allowed_uids
        self._parse = parse
        self._counters = counters

    def admit(self, datagram: Datagram) -> _Message | None:
        """The message; None when it may not enter."""
        if not self._address.fullmatch(datagram.address):
            self._counters["foreign_address"] += 1
            return None
        if self._allowed_uids is not None and datagram.credentials.uid not in self._allowed_uids:
            self._counters["refused_uid"] += 1
            return None
        try:
            return self._parse(datagram.data)
        except ValueError:
            self._counters["malformed"] += 1
            return None


class DatagramSocket:
    """A bound socket and its thread, between `start` and `stop`."""

    def __init__(self, path: str, max_bytes: int, counters: Counter[str]) -> None:
        self.path = Path(path)
        if not self.path.is_absolute():
            raise ValueError(f"socket path {path!r} must be absolute")
        self._address = path
        self._max_bytes = max_bytes
        self.counters = counters
        self._socket: socket.socket | None = None
        self._inode = 0
        self._stopping = False
        self._wake = -1
        self._thread: threading.Thread | None = None

    def start(self, handle: Callable[[Datagram], None]) -> None:
        """Binds, then calls `handle` with each datagram, one by one.

        Raises SocketInUse when another process listens there, OSError when it cannot bind.
        """
        if has_listener(self._address):
            raise SocketInUse(f"{self.path}: another sidecar serves this directory; stop it, or use another directory")
        self.path.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with contextlib.suppress(OSError):  # a sandboxed kernel may not have it: then nothing has waited
                bound.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            bound.bind(self._address)
            set_mode(self.path, 0o666)
            self._inode = self.path.lstat().st_ino
        except OSError:
            bound.close()
            raise
        self._socket = bound
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, args=(handle,), name=self.path.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, closes the socket and removes its path. May be repeated."""
        if self._thread is None or self._socket is None:
            return
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self._thread = None
        self._socket.close()
        os.close(self._wake)
        with contextlib.suppress(OSError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def send(self, data: bytes, address: str) -> bool:
        """Sends from the bound socket without waiting. False when it was not taken: the receiver is gone or full."""
        if self._socket is None:
            return False
        try:
            return self._socket.sendto(data, socket.MSG_DONTWAIT, address) == len(data)
        except (OSError, ValueError):
            self.counters["send_errors"] += 1
            return False

    def _serve(self, handle: Callable[[Datagram], None]) -> None:
        assert self._socket is not None
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while not self._stopping:
            poller.poll(_WAKE_S * 1000)
            while not self._stopping:
                try:
                    datagram = self._receive(self._socket)
                except BlockingIOError:
                    break
                except OSError:
                    self.counters["receive_errors"] += 1
                    break
                if datagram is None:
                    continue
                try:
                    handle(datagram)
                except Exception:
                    self.counters["internal_errors"] += 1

    def _receive(self, bound: socket.socket) -> Datagram | None:
        data, ancillary, flags, sender = bound.recvmsg(self._max_bytes, _ANCILLARY_BYTES)
        self.counters["received"] += 1
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            self.counters["too_long"] += 1
            return None
        credentials, sent_unix_ns = None, time.time_ns()
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(value) == _CREDENTIALS.size:
                pid, uid, _ = _CREDENTIALS.unpack(value)
                credentials = Credentials(pid, uid)
            elif (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(value) == _TIMESTAMP.size:
                seconds, nanoseconds = _TIMESTAMP.unpack(value)
                sent_unix_ns = seconds * 10**9 + nanoseconds
        if credentials is None:
            self.counters["without_credentials"] += 1
            return None
        return Datagram(data, sender if isinstance(sender, str) else "", credentials, sent_unix_ns)
