"""Serves the signed PUTs of a `DirectoryStore`, so that a sidecar uploads in local mode exactly as it does to S3.

Guarantees: nothing is written that no grant covers; a body is streamed to disk, never held; its length is known before
the first byte is read; one request takes at most its granted bytes, and a bounded time; who is silent keeps nobody
out (`Connections`). Answers: 200 with an ETag, 400 for other bytes than granted, 403 without a valid grant, 408 for a
body that comes too slowly, 411 without a length, 503 while the disk refuses. Source: PUT of RFC 9110.
"""

import asyncio
import socket
import ssl
from typing import Final

from aiohttp import web
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_store.base import StoreError
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.part_writer import PartRefused
from fleetprof_store.signed_parts import URL_PATH, GrantRefused, SignedPart

from fleetprof_operator.web.connections import Connections

_CHUNK_BYTES: Final = 1 << 18
LIMITS: Final = ConnectionLimits(most_of_one=512, kept_s=10.0)
STALLED_S: Final = 60  # between two chunks
_SHUTDOWN_S: Final = 2.0
_LINGERING_S: Final = 10.0  # so that who sends much hears a refusal
_LEAST_BYTES_PER_S: Final = 64 << 10


async def serve_uploads(
    store: DirectoryStore,
    place: socket.socket,
    *,
    tls: ssl.SSLContext | None = None,
    limits: ConnectionLimits = LIMITS,
) -> Connections:
    """Listens at `place`, a bound socket, and closes it at the end. Fills in the store's `base_url` when it has none.

    What others can reach should have `tls`: a signed URL may be replayed until it expires. Uploads under way are cut at
    the end, and will be repeated by their sidecars.
    """
    receiver = _Receiver(store)
    application = web.Application()
    application.router.add_put(URL_PATH + "{key:.+}", receiver.receive)
    server = Connections(
        application,
        tls,
        what="uploads",
        limits=limits,
        shutdown_s=_SHUTDOWN_S,
        lingering_s=_LINGERING_S,
        any_request_counts=False,
    )
    receiver.connections = server
    await server.start_at(place)
    host = place.getsockname()[0] if place.family != socket.AF_UNIX else ""
    if not store.base_url:
        shown = f"[{host}]" if ":" in host else host
        store.base_url = f"{'https' if tls else 'http'}://{shown}:{server.port}"
    return server


class _Receiver:
    def __init__(self, store: DirectoryStore) -> None:
        self._store = store
        self.connections: Connections

    async def receive(self, request: web.Request) -> web.Response:
        """One PUT of one part."""
        try:
            part = self._store.check_grant(request.match_info["key"], request.query)
            if request.content_length is None:
                return web.Response(status=411, text="Content-Length is required\n")
            if request.content_length != part.size_bytes:
                raise PartRefused(f"Content-Length is {request.content_length}, {part.size_bytes} bytes were granted")
            self.connections.begin(request)
            try:
                etag = await self._take(request, part)
            finally:
                self.connections.end(request)
        except GrantRefused as error:
            self.connections.refuse("no good pre-signed URL")
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
