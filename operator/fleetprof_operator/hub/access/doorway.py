"""Accepts connections for an HTTP server, so many and for so long that nobody else is kept out.

Guarantees: silent and slow connections are bounded in number and time, before and after the TLS handshake, and those
with something to show come first (`seats`); a Unix socket is open to our own user alone, by the kernel's word; whatever
happens to one connection, the next is accepted, and the log grows by a line per half minute at most.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fleetprof_api.hub.local_hub import peer_uid

from fleetprof_operator.hub.access.seats import Seats
from fleetprof_operator.web.refusals import Refusals
from fleetprof_operator.web.tls_buffers import make_small

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 512
PATIENCE_S: Final = 10.0
"""From a connection, or the answer before, to a request's header whole with a good grant."""

_SWEEP_S: Final = 1.0
_BACKLOG: Final = 256
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S: Final = 0.2


class Guest(asyncio.Protocol):
    """One connection: hands everything on to the HTTP server's protocol."""

    def __init__(
        self, inner: asyncio.Protocol, on_open: Callable[["Guest"], None], on_close: Callable[["Guest"], None]
    ) -> None:
        self._inner = inner
        self._on_open = on_open
        self._on_close = on_close
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, after the TLS handshake where there is one."""
        self.transport = transport
        self._inner.connection_made(transport)
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """No more will come."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The peer reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has read."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees the connection's place."""
        self._on_close(self)
        self._inner.connection_lost(exc)


class Doorway:
    """Listens at `place`, which it closes at the end; `make_protocol` is called per connection."""

    def __init__(
        self,
        place: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        if tls is not None:
            make_small()
        self._place = place
        self._make_protocol = make_protocol
        self._tls = tls
        self._patience_s = patience_s
        self._seats: Seats[Guest] = Seats(MOST_CONNECTIONS, patience_s)
        self._sockets: dict[Guest, socket.socket] = {}
        self._guests: dict[asyncio.BaseTransport, Guest] = {}
        self._greetings: set[asyncio.Task[None]] = set()
        self.refusals = Refusals(log, "uploads")
        self._work: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Begins to accept."""
        self._place.setblocking(False)
        self._place.listen(_BACKLOG)
        self._work = [asyncio.create_task(self._accept()), asyncio.create_task(self._sweep())]

    async def close(self) -> None:
        """Accepts nobody any more, and cuts who has not got beyond the handshake."""
        for task in (*self._work, *self._greetings):
            task.cancel()
        await asyncio.gather(*self._work, *self._greetings, return_exceptions=True)
        self._place.close()

    def begin(self, transport: asyncio.BaseTransport | None) -> None:
        """A request with a good grant came over this connection."""
        if transport is not None and (guest := self._guests.get(transport)):
            self._seats.begin(guest)

    def end(self, transport: asyncio.BaseTransport | None) -> None:
        """It was answered."""
        if transport is not None and (guest := self._guests.get(transport)):
            self._seats.end(guest, self._now())

    def refuse(self, why: str) -> None:
        """Notes a refusal for the log."""
        self.refusals.note(why, self._now())

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._place)
            except OSError as error:
                if error.errno in _NO_FILES:
                    self.refuse("no file descriptors left")
                    await asyncio.sleep(_PAUSE_S)
                continue  # else of one connection that was gone before it was taken
            if connection.family == socket.AF_UNIX and peer_uid(connection) != os.geteuid():
                self.refuse("another user's process")
                connection.close()
                continue
            self._welcome(connection)
            await asyncio.sleep(0)  # who has to go for a newcomer goes before the next

    def _welcome(self, connection: socket.socket) -> None:
        guest = Guest(self._make_protocol(), self._meet, self._lose)
        leaving = self._seats.take(guest, self._now())
        if leaving is guest:
            self.refuse("all connections are in use")
            connection.close()
            return
        if leaving is not None:
            self.refuse("silent for longest when others came")
            self._cut(leaving)
        self._sockets[guest] = connection
        task = asyncio.create_task(self._greet(guest, connection))
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)

    async def _greet(self, guest: Guest, connection: socket.socket) -> None:
        timeout_s = self._patience_s if self._tls else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: guest, connection, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except (OSError, ssl.SSLError, TimeoutError):
            self.refuse("no TLS handshake")
            connection.close()
            self._lose(guest)

    def _meet(self, guest: Guest) -> None:
        assert guest.transport is not None
        self._guests[guest.transport] = guest

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            for guest in self._seats.overdue(self._now()):
                self.refuse("silent for too long")
                self._cut(guest)
            self.refusals.tell(self._now())

    def _cut(self, guest: Guest) -> None:
        connection = self._sockets.get(guest)
        if isinstance(guest.transport, asyncio.Transport):
            guest.transport.abort()
        elif connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # its handshake ends with an error

    def _lose(self, guest: Guest) -> None:
        self._seats.leave(guest)
        self._sockets.pop(guest, None)
        if guest.transport is not None:
            self._guests.pop(guest.transport, None)
