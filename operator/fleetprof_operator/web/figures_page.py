"""/figures: what jobs do now, as one JSON document, for `kubectl fleetprof top`, which comes by the API server's proxy.

Nobody is asked who they are: the Role `fleetprof-top` lets people come by the API server, and pods that reach the port
come without it, as they do to /metrics (docs/security.md). So `read` must tell no more than may be known there.

Guarantees: answered from memory, one document at a time, and the same for KEPT_S; parameters are bounded; a replica
that has no figures says so (503), so that whoever asks comes again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

ReadFigures = Callable[[str, str], Awaitable[bytes | None]]
"""(namespace, workload), "" for all of them → the document; None where another replica has it."""
KEPT_S: Final = 1.0
_MOST_NAME: Final = 320


def add_figures(application: web.Application, read: ReadFigures) -> None:
    """Adds the page."""
    kept: dict[tuple[str, str], tuple[bytes, float]] = {}  # a document, and until when it is good
    turn = asyncio.Lock()

    async def read_or_recall(namespace: str, workload: str) -> bytes | None:
        async with turn:
            now = time.monotonic()
            for asked in [asked for asked, (_, until) in kept.items() if until <= now]:
                del kept[asked]
            if (known := kept.get((namespace, workload))) is not None:
                return known[0]
            document = await read(namespace, workload)
            if document is not None:
                kept[namespace, workload] = document, time.monotonic() + KEPT_S
            return document

    async def figures(request: web.Request) -> web.Response:
        namespace, workload = (request.query.get(name, "") for name in ("namespace", "workload"))
        if max(len(namespace), len(workload)) > _MOST_NAME:
            return web.json_response({"error": f"a name may have {_MOST_NAME} characters"}, status=400)
        document = await read_or_recall(namespace, workload)
        if document is None:
            return web.json_response({"error": "this replica stands by"}, status=503)
        return web.Response(body=document, content_type="application/json")

    application.router.add_get("/figures", figures)
