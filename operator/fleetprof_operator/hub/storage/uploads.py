"""Serves the signed PUTs of a `DirectoryStore`, so that a sidecar uploads in local mode exactly as it does to S3.

Guarantees: nothing is written that no grant covers; a body is streamed to disk, never held; its length is known before
the first byte is read; one request takes at most its granted bytes, and a bounded time; who is silent keeps nobody out
(`doorway`). Answers: 200 with an ETag, 400 for other bytes than granted, 403 without a valid grant, 408 for a body that
comes too slowly, 411 without a length, 503 while the disk refuses. Source: PUT of RFC 9110.
"""

import asyncio
import socket
import ssl
from typing import Final

from aiohttp import web
from fleetprof_store.base import StoreError
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.part_writer import PartRefused
from fleetprof_store.signed_parts import URL_PATH, GrantRefused, SignedPart

from fleetprof_operator.hub.access.doorway import PATIENCE_S, Doorway
from fleetprof_operator.web.http_log import make_http_log

_CHUNK_BYTES: Final = 1 << 18
STALLED_S: Final = 60  # between two chunks
_LEAST_BYTES_PER_S: Final = 64 << 10


class UploadServer:
    """The running server; `port` is where it listens, 0 for a Unix socket."""

    def __init__(self, runner: web.AppRunner, doorway: Doorway, port: int) -> None:
        self._runner = runner
        self._doorway = doorway
        self.port = port

    async def stop(self) -> None:
        """Ends it; uploads under way are cut and will be repeated by their sidecars."""
        await self._doorway.close()
        await self._runner.cleanup()


async def serve_uploads(
    store: DirectoryStore, place: socket.socket, *, tls: ssl.SSLContext | None = None, patience_s: float = PATIENCE_S
) -> UploadServer:
    """Listens at `place`, a bound socket, and closes it at the end. Fills in the store's `base_url` when it has none.

    What others can reach should have `tls`: a signed URL may be replayed until it expires. `patience_s` is how long a
    connection may take for a request's header.
    """
    receiver = _Receiver(store)
    application = web.Application()
    application.router.add_put(URL_PATH + "{key:.+}", receiver.receive)
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=make_http_log("uploads"),
        handle_signals=False,
        shutdown_timeout=2,
        keepalive_timeout=patience_s,
    )
    await runner.setup()
    assert runner.server is not None
    doorway = Doorway(place, runner.server, tls, patience_s=patience_s)
    receiver.doorway = doorway
    doorway.open()
    host, port = place.getsockname()[:2] if place.family != socket.AF_UNIX else ("", 0)
    if not store.base_url:
        shown = f"[{host}]" if ":" in host else host
        store.base_url = f"{'https' if tls else 'http'}://{shown}:{port}"
    return UploadServer(runner, doorway, port)


class _Receiver:
    def __init__(self, store: DirectoryStore) -> None:
        self._store = store
        self.doorway: Doorway

    async def receive(self, request: web.Request) -> web.Response:
        """One PUT of one part."""
        try:
            part = self._store.check_grant(request.match_info["key"], request.query)
            if request.content_length is None:
                return web.Response(status=411, text="Content-Length is required\n")
            if request.content_length != part.size_bytes:
                raise PartRefused(f"Content-Length is {request.content_length}, {part.size_bytes} bytes were granted")
            self.doorway.begin(request.transport)
            try:
                etag = await self._take(request, part)
            finally:
                self.doorway.end(request.transport)
        except GrantRefused as error:
            self.doorway.refuse("no good grant")
            return web.Response(status=403, text=f"{error}\n")
        except PartRefused as error:
            return web.Response(status=400, text=f"{error}\n")
        except TimeoutError:
            return web.Response(status=408, text=f"the bytes came too slowly, or none for {STALLED_S} s\n")
        except StoreError as error:
            return web.Response(status=503, text=f"{error}\n")
        return web.Response(headers={"ETag": etag})

    async def _take(self, request: web.Request, part: SignedPart) -> str:
        writer = await asyncio.to_thread(self._store.receive, part)
        try:
            async with asyncio.timeout(STALLED_S + part.size_bytes / _LEAST_BYTES_PER_S):
                while True:
                    async with asyncio.timeout(STALLED_S):
                        chunk = await request.content.read(_CHUNK_BYTES)
                    if not chunk:
                        break
                    await asyncio.to_thread(writer.write, chunk)
            return await asyncio.to_thread(writer.finish)
        finally:
            writer.discard()
