"""/figures: what jobs do now, as one JSON document, for `kubectl fleetprof top`, which comes by the API server's proxy.

Guarantees: answered from memory; parameters are bounded; a replica that has no figures says so (503), so that whoever
asks comes again.
"""

from collections.abc import Callable
from typing import Final

from aiohttp import web

ReadFigures = Callable[[str, str], bytes | None]
"""(namespace, workload), "" for all of them → the document; None where another replica has it."""
_MOST_NAME: Final = 320


def add_figures(application: web.Application, read: ReadFigures) -> None:
    """Adds the page."""

    async def figures(request: web.Request) -> web.Response:
        namespace, workload = (request.query.get(name, "") for name in ("namespace", "workload"))
        if max(len(namespace), len(workload)) > _MOST_NAME:
            return web.json_response({"error": f"a name may have {_MOST_NAME} characters"}, status=400)
        document = read(namespace, workload)
        if document is None:
            return web.json_response({"error": "this replica stands by"}, status=503)
        return web.Response(body=document, content_type="application/json")

    application.router.add_get("/figures", figures)
