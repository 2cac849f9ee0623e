"""/metrics: the process's own figures, and beside them those of workloads where there are any.

Guarantees: the text of a large fleet is made in a thread, so that a scrape does not make the event loop late; it is
OpenMetrics for who asks for it, Prometheus' text format for others. Source: prometheus-client.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

TakeSnapshot = Callable[[], Awaitable[Collector]]
_END = b"# EOF\n"


def add_metrics(application: web.Application, registry: CollectorRegistry, snapshot: TakeSnapshot | None) -> None:
    """Adds the page. `registry` is asked in the event loop, and so is `snapshot`; what that gives is not."""

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = encode(registry)
        if snapshot is not None:
            workloads = CollectorRegistry()
            workloads.register(await snapshot())
            body = body.removesuffix(_END) + await asyncio.to_thread(encode, workloads)
        return web.Response(body=body, headers={"Content-Type": content_type})

    application.router.add_get("/metrics", metrics)
