"""Our processes' answers to kubelet and Prometheus in a cluster: /healthz, /readyz and, of some, /metrics.

Guarantees: no answer needs the store or the API server, so a probe cannot hang on either; of users' objects nothing is
told but the names and figures of workloads, and that by the operator alone (docs/metrics.md); whoever reaches the port
takes neither the process's descriptors nor the kubelet's answers.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aiohttp import web
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.connection_table import ConnectionLimits

from fleetprof_operator.web.connections import Connections

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from fleetprof_operator.web.metrics_page import TakeSnapshot

LIMITS: Final = ConnectionLimits(most=32, most_of_one=16)


async def serve_probes(
    listen: HostPort,
    find_obstacle: Callable[[], str],
    registry: "CollectorRegistry | None" = None,
    snapshot: "TakeSnapshot | None" = None,
) -> Connections:
    """Serves until closed. Raises OSError. See `make_probes`."""
    application = make_probes(find_obstacle, registry, snapshot)
    probes = Connections(application, None, what="probes", limits=LIMITS)
    await probes.start(listen.host, listen.port)
    return probes


def make_probes(
    find_obstacle: Callable[[], str],
    registry: "CollectorRegistry | None" = None,
    snapshot: "TakeSnapshot | None" = None,
) -> web.Application:
    """`find_obstacle` says why the process is not ready; empty when it is. Without `registry` there is no /metrics;
    `snapshot` adds workloads to it.
    """

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readiness(_: web.Request) -> web.Response:
        obstacle = find_obstacle()
        return web.Response(text=f"{obstacle or 'ok'}\n", status=503 if obstacle else 200)

    application = web.Application()
    application.router.add_get("/healthz", health)
    application.router.add_get("/readyz", readiness)
    if registry is not None:
        from fleetprof_operator.web.metrics_page import add_metrics

        add_metrics(application, registry, snapshot)
    return application
