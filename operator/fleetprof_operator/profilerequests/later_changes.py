"""Changes of requests that have ended: the TTL may be set at any time, and `observedGeneration` follows.

A request's daemon ends with it, so nobody else would. Tools that wait for `observedGeneration` (kstatus: Flux, Argo CD)
would call the request in progress for good.

Guarantees: derived from the objects alone, so that a restart loses nothing; of the status nothing else changes; a
request of the same name that took its place is never written to (each write tests the uid). Right: patch
profilerequests/status.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.profilerequests.records import request_path
from fleetprof_operator.profilerequests.status import build_status, is_finished

log = logging.getLogger(__name__)

_RETRY_S: Final = 10.0


def find_status(body: Json, now_unix_ns: int) -> Json | None:
    """The status that a request which has ended should have now; None: it has it, or it is not for us to write."""
    status, generation = body.get("status") or {}, body["metadata"]["generation"]
    if not is_finished(status) or "deletionTimestamp" in body["metadata"]:
        return None
    if status.get("observedGeneration", 0) >= generation:
        return None
    target = status.get("target", "")
    return build_status(status, {"facts": {}}, target=target, generation=generation, now_unix_ns=now_unix_ns)


class LaterChanges:
    """Tell it of every request that is seen (`note`) or gone (`forget`), and let `run` run."""

    def __init__(self, cluster: Cluster, *, on_write: Callable[[], None]) -> None:
        self._cluster = cluster
        self._on_write = on_write
        self._newest: dict[str, Json] = {}
        self._changed = asyncio.Event()

    def note(self, body: Json) -> None:
        """The newest body of a request."""
        if find_status(body, 0) is None:
            self.forget(body["metadata"]["uid"])
        else:
            self._newest[body["metadata"]["uid"]] = body
            self._changed.set()

    def forget(self, uid: str) -> None:
        """The request is gone."""
        self._newest.pop(uid, None)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            for uid, body in list(self._newest.items()):
                if await self._write(body) and self._newest.get(uid) is body:
                    self.forget(uid)
            try:
                # What could not be written is still there.
                async with asyncio.timeout(_RETRY_S if self._newest else None):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _write(self, body: Json) -> bool:
        """False when it is to be tried again."""
        metadata = body["metadata"]
        own = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
        status = {"op": "add", "path": "/status", "value": find_status(body, time.time_ns())}
        name = f"{metadata['namespace']}/{metadata['name']}"
        try:
            await self._cluster.patch(f"{request_path(metadata['namespace'], metadata['name'])}/status", [own, status])
        except ApiRefused as refusal:
            if refusal.status in (404, 422):  # gone, or another has its name
                return True
            log.warning("the generation of request %s cannot be written yet: %s", name, refusal)
            return False
        except ApiUnreachable as error:
            log.warning("the generation of request %s cannot be written yet: %s", name, error)
            return False
        self._on_write()
        return True
