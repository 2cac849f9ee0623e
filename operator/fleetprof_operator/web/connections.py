"""Takes connections for a web server, within limits: its port is open to every pod of the cluster.

Guarantees: at most `most` connections and so many of one address; when all are taken, the address that has the most
gives up its longest unused one, be it in its handshake, so that nobody keeps the API server out; a TLS handshake, and
the first request after it, come soon or the connection ends; what peers do wrong fills no log.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from fleetprof_operator.web.http_log import make_http_log
from fleetprof_operator.web.tls_buffers import make_small

MOST_CONNECTIONS: Final = 512
MOST_OF_ONE_ADDRESS: Final = 256
"""An API server sends each review that comes while others are under way over a connection of its own."""
HANDSHAKE_S: Final = 5.0
FIRST_REQUEST_S: Final = 5.0
KEEP_ALIVE_S: Final = 120.0
"""Longer than the API server keeps an unused connection (90 s), so that it never sends into one that we have closed."""
SHUTDOWN_S: Final = 5.0
"""For requests under way, longer than a pod's review may take."""
LOOK_S: Final = 1.0
_BACKLOG: Final = 256

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Connection:
    address: str
    since: float  # of the last change: taken, or a request's end
    handler: RequestHandler | None = None  # None during the handshake
    task: asyncio.Task[None] | None = None
    requests: int = 0
    is_busy: bool = False


class Connections:
    """Listens at a port for an app; `what` comes there, for the log. `port` is there after `start`."""

    def __init__(
        self,
        app: web.Application,
        context: ssl.SSLContext | None,
        *,
        what: str,
        most: int = MOST_CONNECTIONS,
        most_of_one: int = MOST_OF_ONE_ADDRESS,
    ) -> None:
        if context is not None:
            make_small()
        app.middlewares.append(self._note_request)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=make_http_log(what),
            handle_signals=False,
            shutdown_timeout=SHUTDOWN_S,
            keepalive_timeout=KEEP_ALIVE_S,
            auto_decompress=False,
            lingering_time=2.0,
        )
        self._context = context
        self._most = most
        self._most_of_one = most_of_one
        self._open: set[_Connection] = set()
        self._by_handler: dict[RequestHandler, _Connection] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._socket: socket.socket | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        await self._runner.setup()
        self._tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._look())]

    async def close(self) -> None:
        """No further connection; those that there are end when they have answered."""
        for task in (*self._tasks, *(c.task for c in self._open if c.task is not None)):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
        await self._runner.cleanup()

    async def _accept(self) -> None:
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._socket)
            except OSError as problem:
                log.warning("no connection can be taken: %s", problem)  # out of descriptors, as a rule
                await asyncio.sleep(LOOK_S)
                continue
            try:
                self._take(accepted, address[0])
            except Exception:
                log.exception("a connection is dropped by a fault of ours")  # and the next one is taken
                accepted.close()

    def _take(self, accepted: socket.socket, address: str) -> None:
        self._forget_ended()
        counts = Counter(connection.address for connection in self._open)
        if counts[address] >= self._most_of_one or (len(self._open) >= self._most and not self._give_up_one(counts)):
            accepted.close()
            return
        connection = _Connection(address, asyncio.get_running_loop().time())
        self._open.add(connection)
        connection.task = asyncio.create_task(self._welcome(accepted, connection))

    async def _welcome(self, accepted: socket.socket, connection: _Connection) -> None:
        server = self._runner.server
        assert server is not None
        handler = server()
        self._by_handler[handler] = connection  # a request may come before the next line of ours
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_S if self._context is not None else None,
            )
        except BaseException as problem:
            self._open.discard(connection)
            self._by_handler.pop(handler, None)
            if isinstance(handler.transport, asyncio.Transport):
                handler.transport.abort()
            else:
                accepted.close()
            if not isinstance(problem, OSError):  # among them what TLS says, and a handshake that takes too long
                raise
            return
        finally:
            connection.task = None
        connection.handler = handler
        connection.since = asyncio.get_running_loop().time()

    def _give_up_one(self, counts: Counter[str]) -> bool:
        """Ends the longest unused connection of the address that has the most. False when it uses them all."""
        greediest = counts.most_common(1)[0][0]
        unused = [c for c in self._open if c.address == greediest and not c.is_busy]
        if not unused:
            return False
        longest = min(unused, key=lambda connection: connection.since)
        if longest.task is not None:  # silent since before the handshake: ends by `_welcome`
            longest.task.cancel()
        self._end(longest)
        return True

    async def _look(self) -> None:
        """Ends what is silent. The rest of them aiohttp ends after KEEP_ALIVE_S."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._forget_ended()
            latest = asyncio.get_running_loop().time() - FIRST_REQUEST_S
            for connection in list(self._open):
                if connection.handler is not None and not connection.requests and connection.since < latest:
                    self._end(connection)

    def _end(self, connection: _Connection) -> None:
        handler = connection.handler
        if handler is not None:
            transport = handler.transport
            handler.force_close()
            if transport is not None:
                # A closing handshake would wait for a peer that does not speak.
                with suppress(OSError):
                    transport.abort()
            self._by_handler.pop(handler, None)
        self._open.discard(connection)

    def _forget_ended(self) -> None:
        for connection in [c for c in self._open if c.handler is not None and c.handler.transport is None]:
            self._end(connection)

    @web.middleware
    async def _note_request(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = self._by_handler.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.requests += 1
        connection.is_busy = True
        try:
            return await handler(request)
        finally:
            connection.is_busy = False
            connection.since = asyncio.get_running_loop().time()
