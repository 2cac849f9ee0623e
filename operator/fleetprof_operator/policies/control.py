"""The policies as a part of the operator: kopf's handlers, the receiver's server, the turns."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import kopf
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.connection_table import ConnectionLimits

from fleetprof_operator.hub.server import ServerTls
from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.policies.engine import Engine
from fleetprof_operator.policies.policy_state import PLURAL
from fleetprof_operator.policies.receiver import AlertReceiver, load_certificate
from fleetprof_operator.web.connections import Connections

log = logging.getLogger(__name__)

MOST_CALLERS: Final = 16
_RENEW_S: Final = 600.0


class PolicyControl:
    """`serves`: whether an object is this release's. `receiver` None: no calls of Alertmanager are taken.

    Without `certificate` it speaks plain HTTP. `port` is there once it listens.
    """

    def __init__(
        self,
        engine: Engine,
        serves: Callable[[Mapping[str, Any]], bool],
        receiver: AlertReceiver | None,
        listen: HostPort,
        certificate: Callable[[], ServerTls] | None,
    ) -> None:
        self._engine = engine
        self._serves = serves
        self._receiver = receiver
        self._listen = listen
        self._certificate = certificate
        self._cleanup = AsyncExitStack()
        self.is_running = False
        self.port = 0

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Adds the handlers."""
        kind: dict[str, Any] = {"group": "fleetprof.io", "version": "v1alpha1", "plural": PLURAL, "registry": registry}
        kopf.on.event(**kind)(self.on_event)

    async def on_event(self, event: Mapping[str, Any], **_: Any) -> None:
        """Any change of any policy."""
        body: Json = event["object"]
        if event["type"] == "DELETED" or not self._serves(body):
            self._engine.forget(body["metadata"]["uid"])
        else:
            self._engine.note(body)

    async def start(self) -> None:
        """Begins the turns, and listens. Raises OSError, ssl.SSLError."""
        self._do(self._engine.run())
        if self._receiver is not None:
            await self._listen_for(self._receiver)
        self.is_running = True

    async def close(self) -> None:
        """Ends everything; what is undone stands in the policies' status."""
        await self._cleanup.aclose()

    async def _listen_for(self, receiver: AlertReceiver) -> None:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            pair = self._certificate()
            load_certificate(context, pair.certificate_chain, pair.private_key)
            self._do(self._renew(context, pair))
        server = Connections(
            receiver.make_application(),
            context,
            what="alert receiver",
            limits=ConnectionLimits(most=MOST_CALLERS, most_of_one=MOST_CALLERS // 2),
        )
        await server.start(self._listen.host, self._listen.port)
        self._cleanup.push_async_callback(server.close)
        self.port = server.port
        log.info("the alert receiver listens at port %d", self.port)

    async def _renew(self, context: ssl.SSLContext, served: ServerTls) -> None:
        assert self._certificate is not None
        while True:
            await asyncio.sleep(_RENEW_S)
            try:
                pair = self._certificate()
                if pair != served:
                    load_certificate(context, pair.certificate_chain, pair.private_key)
                    served = pair
            except (ssl.SSLError, OSError, RuntimeError) as problem:
                log.warning("the alert receiver keeps its certificate: %s", problem)

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._cleanup.push_async_callback(end)
