"""The relay of a process that stands by: it hands them on to the process that serves.

All replicas are ready, so the Service sends sidecars, and Alertmanager, to any of them. A relay needs no right; the
other ways to lead callers to one replica would let the operator change pods or the addresses of Services.

Guarantees: bytes are passed on as they come, so TLS is between the caller and the process that serves; where nobody
serves, a caller's connection is closed and it dials again; all connections end with `close`, and before that process
serves itself.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fleetprof_api.process.address import HostPort

log = logging.getLogger(__name__)

_DIAL_S: Final = 5.0
_PIECE_BYTES: Final = 1 << 16


class Relay:
    """`find_server` tells where the server listens now, None when nobody knows; it takes `most` connections.

    `port` is there after `start`.
    """

    def __init__(self, find_server: Callable[[], HostPort | None], *, most: int) -> None:
        self._find_server = find_server
        self._most = most
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, listen: HostPort) -> None:
        """Begins to listen. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, listen.host, listen.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= self._most and (server := self._find_server()):
                await _join(reader, writer, server)
        except (OSError, TimeoutError, ValueError) as error:
            log.debug("a caller cannot be handed on: %s", error)
        except asyncio.CancelledError:
            pass  # the server's own task of this connection: nobody awaits it
        finally:
            self._tasks.discard(task)
            writer.close()


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: HostPort) -> None:
    async with asyncio.timeout(_DIAL_S):
        its_reader, its_writer = await asyncio.open_connection(server.host, server.port)
    pumps = [asyncio.create_task(_pump(reader, its_writer)), asyncio.create_task(_pump(its_reader, writer))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        its_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
