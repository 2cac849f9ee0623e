"""Takes connections for a web server, within limits: its port may be open to every pod of the cluster.

Guarantees: silent and slow connections are bounded in number and time, before and after the TLS handshake, and those
with something to do stay (`connection_table`); a Unix socket is open to our own user alone, by the kernel's word;
whatever happens to one connection, the next is accepted, and the log grows by a line per half minute at most.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from fleetprof_api.process.connection_table import ConnectionLimits, ConnectionTable
from fleetprof_api.process.unix_peer import peer_uid

from fleetprof_operator.web.http_log import make_http_log
from fleetprof_operator.web.refusals import Refusals
from fleetprof_operator.web.tls_buffers import make_small

SHUTDOWN_S: Final = 5.0
"""For requests under way, longer than a pod's review may take."""
LOOK_S: Final = 1.0
_LINGERING_S: Final = 2.0
_BACKLOG: Final = 256
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S: Final = 0.2

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


class Connections:
    """Serves an app at one place; `what` comes there, for the log. `port` is there after `start`.

    With `any_request_counts` a connection is in use from any request to its answer; else a handler says so (`begin`).
    """

    def __init__(
        self,
        app: web.Application,
        context: ssl.SSLContext | None,
        *,
        what: str,
        limits: ConnectionLimits | None = None,
        shutdown_s: float = SHUTDOWN_S,
        lingering_s: float = _LINGERING_S,
        any_request_counts: bool = True,
    ) -> None:
        if context is not None:
            make_small()
        if any_request_counts:
            app.middlewares.append(self._note_request)
        self._limits = limits or ConnectionLimits()
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=make_http_log(what),
            handle_signals=False,
            shutdown_timeout=shutdown_s,
            keepalive_timeout=self._limits.kept_s,
            auto_decompress=False,
            lingering_time=lingering_s,
        )
        self._context = context
        self._table: ConnectionTable[RequestHandler] = ConnectionTable(self._limits)
        self._open: set[RequestHandler] = set()
        self._handshakes: dict[RequestHandler, asyncio.Task[None]] = {}
        self._refusals = Refusals(log, what)
        self._tasks: list[asyncio.Task[None]] = []
        self._place: socket.socket | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listens at a port. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        await self.start_at(socket.create_server((host, port), family=family, backlog=_BACKLOG))

    async def start_at(self, place: socket.socket) -> None:
        """Listens at a bound socket, which it closes at the end. Raises OSError."""
        self._place = place
        place.setblocking(False)
        place.listen(_BACKLOG)
        self.port = place.getsockname()[1] if place.family != socket.AF_UNIX else 0
        await self._runner.setup()
        self._tasks = [asyncio.create_task(self._accept(place)), asyncio.create_task(self._look())]

    async def close(self) -> None:
        """Accepts nobody any more, and cuts handshakes; other connections end when they have answered."""
        work = [*self._tasks, *self._handshakes.values()]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        if self._place is not None:
            self._place.close()
        await self._runner.cleanup()

    def begin(self, request: web.Request) -> None:
        """The request is one to be answered: its connection stays."""
        self._table.begin(request.protocol)

    def end(self, request: web.Request) -> None:
        """It was answered."""
        self._table.end(request.protocol, _now())

    def refuse(self, why: str) -> None:
        """Notes a refusal for the log; `why` is one of few texts."""
        self._refusals.note(why, _now())

    async def _accept(self, place: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(place)
            except OSError as error:
                if error.errno in _NO_FILES:
                    self.refuse("no file descriptors left")
                    await asyncio.sleep(_PAUSE_S)
                continue  # else of one connection that was gone before it was taken
            if accepted.family == socket.AF_UNIX and peer_uid(accepted) != os.geteuid():
                self.refuse("another user's process")
                accepted.close()
                continue
            try:
                self._take(accepted, address[0] if accepted.family != socket.AF_UNIX else "")
            except Exception:
                log.exception("a connection is dropped by a fault of ours")  # and the next one is taken
                accepted.close()
            await asyncio.sleep(0)  # who has to go for a newcomer goes before the next

    def _take(self, accepted: socket.socket, address: str) -> None:
        self._forget_ended()
        server = self._runner.server
        assert server is not None
        handler = server()
        leaving = self._table.take(handler, address, _now())
        if leaving is handler:
            self.refuse("all connections are in use")
            accepted.close()
            return
        if leaving is not None:
            self.refuse("silent for longest when others came")
            self._cut(leaving)
        self._open.add(handler)
        self._handshakes[handler] = asyncio.create_task(self._welcome(accepted, handler))

    async def _welcome(self, accepted: socket.socket, handler: RequestHandler) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.patience_s if self._context is not None else None,
            )
        except BaseException as problem:
            self._table.leave(handler)
            self._open.discard(handler)
            if isinstance(handler.transport, asyncio.Transport):
                handler.transport.abort()
            else:
                accepted.close()
            if not isinstance(problem, OSError):  # among them what TLS says, and a handshake that takes too long
                raise
            self.refuse("no TLS handshake")
        finally:
            self._handshakes.pop(handler, None)

    async def _look(self) -> None:
        """Ends what is silent."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._forget_ended()
            for handler in self._table.remove_overdue(_now()):
                self.refuse("silent for too long")
                self._cut(handler)
            self._refusals.tell(_now())

    def _cut(self, handler: RequestHandler) -> None:
        """Ends a connection that is no longer in the table."""
        self._open.discard(handler)
        if (handshake := self._handshakes.get(handler)) is not None:
            handshake.cancel()
        transport = handler.transport
        handler.force_close()
        if transport is not None:
            # A closing handshake would wait for a peer that does not speak.
            with suppress(OSError):
                transport.abort()

    def _forget_ended(self) -> None:
        ended = [h for h in self._open if h.transport is None and h not in self._handshakes]
        for handler in ended:
            self._table.leave(handler)
            self._open.discard(handler)

    @web.middleware
    async def _note_request(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        self.begin(request)
        try:
            return await handler(request)
        finally:
            self.end(request)


def _now() -> float:
    return asyncio.get_running_loop().time()
