"""The operator's HTTP side: /metrics for Prometheus, /healthz and /readyz for the kubelet.

Guarantees: no answer needs the store or the API server, so a probe cannot hang on either; nothing is told that is a
user's (docs/metrics.md).
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fleetprof_operator.requests.settings import Listen


class ProbeServer:
    """The running server; `port` is where it listens."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner = runner
        self.port = port

    async def stop(self) -> None:
        """Ends it."""
        await self._runner.cleanup()


async def serve_probes(listen: Listen, registry: CollectorRegistry, find_obstacle: Callable[[], str]) -> ProbeServer:
    """Serves until stopped. `find_obstacle` says why the operator is not ready; empty when it is. Raises OSError."""

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
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, listen.host, listen.port).start()
    except OSError:
        await runner.cleanup()
        raise
    return ProbeServer(runner, int(runner.addresses[0][1]))
