"""/figures: what jobs do now, as one JSON document, for `kubectl fleetprof top`, which comes by the API server's proxy.

At a port of its own, because a network policy cannot name the API server: the port of /metrics can then be kept to
Prometheus. The token comes in a header of its own, because the proxy takes `Authorization` away.

Guarantees: nothing is told without a good token; answered from memory, one document at a time, and the same for KEPT_S;
parameters are bounded; a replica that has no figures says so (503), so that whoever asks comes again. A refusal has a
`message`, as one of the API server's has.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_api.telemetry.figures import HEADER

from fleetprof_operator.web.connections import Connections

ReadFigures = Callable[[str, str], Awaitable[bytes | None]]
"""(namespace, workload), "" for all of them → the document; None where another replica has it."""
Admit = Callable[[str], Awaitable[bool | None]]
"""A token → whether its bearer may read; None when nobody can tell now."""
KEPT_S: Final = 1.0
_MOST_NAME: Final = 320
_LIMITS: Final = ConnectionLimits(most=32, most_of_one=32)  # most come from one address, the API server's


async def serve_figures(listen: HostPort, read: ReadFigures, admit: Admit) -> Connections:
    """Serves until closed. Raises OSError."""
    application = make_figures(read, admit)
    server = Connections(application, None, what="figures", limits=_LIMITS)
    await server.start(listen.host, listen.port)
    return server


def make_figures(read: ReadFigures, admit: Admit) -> web.Application:
    """Makes the web application that serves the figures."""
    kept: dict[tuple[str, str], tuple[bytes, float]] = {}  # a document, and until when it is good
    turn = asyncio.Lock()

    async def read_or_recall(namespace: str, workload: str) -> bytes | None:
        async with turn:
            now = time.monotonic()
            for key in [key for key, (_, until) in kept.items() if until <= now]:
                del kept[key]
            if (known := kept.get((namespace, workload))) is not None:
                return known[0]
            document = await read(namespace, workload)
            if document is not None:
                kept[namespace, workload] = document, time.monotonic() + KEPT_S
            return document

    async def figures(request: web.Request) -> web.Response:
        admitted = await admit(request.headers.get(HEADER, ""))
        if admitted is None:
            return web.json_response({"message": "the token cannot be checked now"}, status=503)
        if not admitted:
            return web.json_response({"message": f"{HEADER} holds no good token"}, status=401)
        namespace, workload = (request.query.get(name, "") for name in ("namespace", "workload"))
        if max(len(namespace), len(workload)) > _MOST_NAME:
            return web.json_response({"message": f"a name may have {_MOST_NAME} characters"}, status=400)
        document = await read_or_recall(namespace, workload)
        if document is None:
            return web.json_response({"message": "this replica stands by"}, status=503)
        return web.Response(body=document, content_type="application/json")

    application = web.Application()
    application.router.add_get("/figures", figures)
    return application
