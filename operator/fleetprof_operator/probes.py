"""The operator's HTTP side: /metrics for Prometheus, /healthz and /readyz for the kubelet.

Guarantees: no answer needs the store or the API server, so a probe cannot hang on either; nothing is told that is a
user's (docs/metrics.md); whoever reaches the port takes neither the hub's descriptors nor the kubelet's answers.
"""

from collections.abc import Callable
from typing import Final

from aiohttp import web
from fleetprof_api.process.address import HostPort
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fleetprof_operator.web.connections import Connections

MOST_CONNECTIONS: Final = 32


async def serve_probes(listen: HostPort, registry: CollectorRegistry, find_obstacle: Callable[[], str]) -> Connections:
    """Serves until closed. `find_obstacle` says why the operator is not ready; empty when it is. Raises OSError."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readiness(_: web.Request) -> web.Response:
        obstacle = find_obstacle()
        return web.Response(text=f"{obstacle or 'ok'}\n", status=503 if obstacle else 200)

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/healthz", health)
    application.router.add_get("/readyz", readiness)
    probes = Connections(application, None, what="probes", most=MOST_CONNECTIONS, most_of_one=MOST_CONNECTIONS // 2)
    await probes.start(listen.host, listen.port)
    return probes
