"""Serves the signed PUTs of a `DirectoryStore`, so that a sidecar uploads in local mode exactly as it does to S3.

Guarantees: nothing is written that no grant covers; a body is streamed to disk, never held; its length is known before
the first byte is read; one request takes at most its granted bytes. Answers: 200 with an ETag, 400 for other bytes than
granted, 403 without a valid grant, 411 without a length, 503 while the disk refuses. Source: PUT of RFC 9110.
"""

import asyncio
import ssl
from typing import Final

from aiohttp import web
from fleetprof_api.store.base import StoreError
from fleetprof_api.store.directory import URL_PATH, DirectoryStore, GrantRefused, PartRefused

_CHUNK_BYTES: Final = 1 << 18
_STALLED_S: Final = 60  # between two chunks


class UploadServer:
    """The running server; `port` is where it listens."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner = runner
        self.port = port

    async def stop(self) -> None:
        """Ends it; uploads under way are cut and will be repeated by their sidecars."""
        await self._runner.cleanup()


async def serve_uploads(
    store: DirectoryStore, host: str, port: int, *, tls: ssl.SSLContext | None = None
) -> UploadServer:
    """Listens on `host`:`port` (0: any free one). Fills in the store's `base_url` when it has none.

    Anything but loopback should have `tls`: a signed URL may be replayed until it expires.

    Raises OSError when the address is taken.
    """
    application = web.Application()
    application.router.add_put(URL_PATH + "{key:.+}", _Receiver(store).receive)
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError:
        await runner.cleanup()
        raise
    bound = int(runner.addresses[0][1])
    if not store.base_url:
        shown = f"[{host}]" if ":" in host else host
        store.base_url = f"{'https' if tls else 'http'}://{shown}:{bound}"
    return UploadServer(runner, bound)


class _Receiver:
    def __init__(self, store: DirectoryStore) -> None:
        self._store = store

    async def receive(self, request: web.Request) -> web.Response:
        """One PUT of one part."""
        try:
            part = self._store.check_grant(request.match_info["key"], request.query)
            if request.content_length is None:
                return web.Response(status=411, text="Content-Length is required\n")
            if request.content_length != part.size_bytes:
                raise PartRefused(f"Content-Length is {request.content_length}, {part.size_bytes} bytes were granted")
            writer = await asyncio.to_thread(self._store.receive, part)
            try:
                while True:
                    async with asyncio.timeout(_STALLED_S):
                        chunk = await request.content.read(_CHUNK_BYTES)
                    if not chunk:
                        break
                    await asyncio.to_thread(writer.write, chunk)
                etag = await asyncio.to_thread(writer.finish)
            finally:
                writer.discard()
        except GrantRefused as error:
            return web.Response(status=403, text=f"{error}\n")
        except PartRefused as error:
            return web.Response(status=400, text=f"{error}\n")
        except TimeoutError:
            return web.Response(status=408, text=f"no byte came for {_STALLED_S} s\n")
        except StoreError as error:
            return web.Response(status=503, text=f"{error}\n")
        return web.Response(headers={"ETag": etag})
