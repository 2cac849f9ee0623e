"""`fleetprof-webhook`: the process that answers the API server, two of them in an installation (webhook_settings).

Needs no right on pods: the API server hands them over. Its service account may `list` resourcequotas and limitranges,
and with --require-image `list` and `watch` nodes.
Guarantees: wrong settings end it with exit code 2 and a sentence; after SIGTERM it says that it is not ready, answers
for LEAVE_S more (the API server may still send), then ends with exit code 0.
"""

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.injection.cluster_nodes import ClusterNodes
from fleetprof_operator.injection.namespace_limits import Json, NamespaceLimitsReader
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, InvalidSettings
from fleetprof_operator.injection.store_address import StoreAddress
from fleetprof_operator.injection.webhook import Webhook
from fleetprof_operator.injection.webhook_certificate import WebhookCertificate
from fleetprof_operator.injection.webhook_settings import WebhookSettings, read_settings
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.web.connections import Connections
from fleetprof_operator.web.probes import serve_probes

LEAVE_S: Final = 5.0
_LOOK_S: Final = 5.0
# So soon a thread that works gives the interpreter back to the event loop, which asks for it after every call.
_SWITCH_S: Final = 0.0005
_NATIVE_SIDECARS: Final = (1, 29)

log = logging.getLogger(__name__)


class _Current:
    """The settings of a sidecar at this moment, with what was found out since the webhook's start."""

    def __init__(self, settings: InjectionSettings, certificate: WebhookCertificate, store: StoreAddress) -> None:
        self._settings = settings
        self._certificate = certificate
        self._store = store
        self._made: InjectionSettings | None = None
        self.has_native_sidecars: bool | None = None

    def __call__(self) -> InjectionSettings | None:
        authority, native = self._certificate.authority, self.has_native_sidecars
        if not authority or native is None:
            return None
        found = (authority, native, self._store.ip)
        if self._made is None or (self._made.ca, self._made.native_sidecars, self._made.store_ip) != found:
            try:
                self._made = replace(self._settings, ca=authority, native_sidecars=native, store_ip=self._store.ip)
            except InvalidSettings as problem:
                log.error("the authority in the certificate's directory cannot be used: %s", problem)
        return self._made


async def serve(settings: WebhookSettings, stop: asyncio.Event) -> None:
    """Answers until `stop`, then for LEAVE_S more."""
    certificate = WebhookCertificate(settings.tls_directory, settings.hub_ca)
    store = StoreAddress(settings.sidecar.store_host)
    current = _Current(settings.sidecar, certificate, store)
    cluster = await Cluster.connect()

    async def list_objects(path: str) -> list[Json]:
        return (await cluster.list(path, {"resourceVersion": "0"}))[0]

    nodes = ClusterNodes(cluster, settings.sidecar.image) if settings.require_image else None
    watching = asyncio.create_task(nodes.run()) if nodes else None
    webhook = Webhook(current, NamespaceLimitsReader(list_objects), nodes.current if nodes else None)
    health = await serve_probes(settings.listen.http, webhook.find_obstacle, webhook.registry)
    admission: Connections | None = None
    try:
        while not stop.is_set():
            if certificate.load() and admission is None:
                admission = Connections(webhook.make_admission(), certificate.context, what="reviews")
                await admission.start(settings.listen.https.host, settings.listen.https.port)
            if current.has_native_sidecars is None:
                current.has_native_sidecars = await _ask_for_native_sidecars(cluster)
            await store.look_up()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK_S if admission else 1.0)
        webhook.is_leaving = True
        await asyncio.sleep(LEAVE_S)
    finally:
        for connections in (admission, health):
            if connections is not None:
                await connections.close()
        webhook.close()
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        await cluster.close()


async def _ask_for_native_sidecars(cluster: Cluster) -> bool | None:
    try:
        version = await cluster.get("/version")
        numbers = [int("".join(filter(str.isdigit, version[part]))) for part in ("major", "minor")]
    except (ApiRefused, ApiUnreachable, KeyError, ValueError) as problem:
        log.warning("the API server does not tell its version: %s", problem)
        return None
    return tuple(numbers) >= _NATIVE_SIDECARS


async def _run(settings: WebhookSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, stop)


def main() -> None:
    """Answers until SIGTERM or SIGINT."""
    settings = read_settings(sys.argv[1:])
    set_up_logging(settings.log_level)
    sys.setswitchinterval(_SWITCH_S)
    asyncio.run(_run(settings))


if __name__ == "__main__":
    main()
