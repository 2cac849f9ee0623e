"""The owner of a pod, by its metadata at the API server: a sidecar's word for it could be a colleague's job.

Guarantees: asked once for each pod, a few at a time; a pod of another uid, or one that cannot be read now, has no
workload, and its telemetry is its own. Rights that this uses: get pods.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.injection.pods.workload import find_workload
from fleetprof_operator.kubernetes.cluster import Cluster

_AT_ONCE: Final = 8
_PATIENCE_S: Final = 3.0
"""A sidecar waits for its welcome meanwhile; it is asked again when the sidecar dials again, after an hour at most."""
_MOST_KNOWN: Final = 20_000

log = logging.getLogger(__name__)


class PodWorkloads:
    """Remembers the owners of the pods that it was asked about last: owners of a pod do not change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: OrderedDict[str, str] = OrderedDict()
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def find(self, namespace: str, name: str, uid: str) -> str:
        """APIVERSION/KIND/NAME; "" where nothing owns it, or that cannot be told."""
        if (known := self._known.get(uid)) is not None:
            self._known.move_to_end(uid)
            return known
        try:
            async with asyncio.timeout(_PATIENCE_S), self._room:
                pod = await self._cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}", metadata_only=True)
        except (ApiRefused, ApiUnreachable, TimeoutError) as error:
            log.warning("what owns pod %s/%s cannot be told now: %s", namespace, name, error or "no answer")
            return ""
        if pod["metadata"].get("uid") != uid:
            return ""
        self._known[uid] = found = find_workload(pod)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found
