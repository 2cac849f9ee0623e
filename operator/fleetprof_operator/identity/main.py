"""`fleetprof-certificates`: keeps the webhook's certificate, and has the API server trust it. It does nothing else.

A process with a service account of its own, so that the right to change the webhook's configuration is nobody else's:
who holds it could have the API server show them every pod of the cluster. It hears the kubelet's probes only.

    FLEETPROF_NAMESPACE               where the Secret is                       required
    FLEETPROF_TLS_SECRET              the Secret, which is there                required
    FLEETPROF_TLS_NAMES               names of the webhook, with commas         required
    FLEETPROF_WEBHOOK_CONFIGURATION   MutatingWebhookConfiguration to fill      required
    FLEETPROF_HTTP_PORT               /healthz and /readyz                      default 8080
    FLEETPROF_LOG_LEVEL               debug, info, warning, error               default info

Guarantees: wrong settings end it with exit code 2 and a sentence; SIGTERM ends it at once with exit code 0.
"""

import asyncio
import os
import signal
import sys
from typing import Final

from aiohttp import web

from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.web.connections import Connections

WRONG_SETTINGS: Final = 2
_MOST_PROBES: Final = 32
_REQUIRED: Final = (
    "FLEETPROF_NAMESPACE",
    "FLEETPROF_TLS_SECRET",
    "FLEETPROF_TLS_NAMES",
    "FLEETPROF_WEBHOOK_CONFIGURATION",
)


async def _keep(namespace: str, secret: str, names: str, configuration: str, port: int) -> None:
    cluster = await Cluster.connect()
    keeper = CertificateKeeper(
        cluster,
        namespace=namespace,
        secret=secret,
        names=[name for name in names.split(",") if name],
        webhook_configuration=configuration,
    )
    probes = await _serve_probes(keeper, port)
    keeping = asyncio.create_task(keeper.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, keeping.cancel)
    try:
        await asyncio.gather(keeping, return_exceptions=True)
    finally:
        await probes.close()
        await cluster.close()


async def _serve_probes(keeper: CertificateKeeper, port: int) -> Connections:
    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readiness(_: web.Request) -> web.Response:
        trouble = keeper.trouble
        return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)

    app = web.Application()
    app.router.add_get("/healthz", health)
    app.router.add_get("/readyz", readiness)
    probes = Connections(app, None, what="probes", most=_MOST_PROBES, most_of_one=_MOST_PROBES // 2)
    await probes.start("0.0.0.0", port)  # noqa: S104 - the kubelet asks at the pod's address
    return probes


def main() -> None:
    """Keeps certificates until SIGTERM or SIGINT."""
    set_up_logging(os.environ.get("FLEETPROF_LOG_LEVEL") or "info")
    given = [os.environ.get(name, "") for name in _REQUIRED]
    port = os.environ.get("FLEETPROF_HTTP_PORT") or "8080"
    missing = [name for name, value in zip(_REQUIRED, given, strict=True) if not value]
    if missing or not port.isdecimal():
        problem = f"{missing[0]}: must be set" if missing else f"FLEETPROF_HTTP_PORT: {port!r} is no port"
        print(f"fleetprof-certificates: {problem}", file=sys.stderr)  # noqa: T201 - who starts it by hand reads this
        raise SystemExit(WRONG_SETTINGS)
    namespace, secret, names, configuration = given
    asyncio.run(_keep(namespace, secret, names, configuration, int(port)))


if __name__ == "__main__":
    main()
