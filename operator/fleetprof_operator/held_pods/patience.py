"""The patience of pods with their sidecars: then each goes on without, and an Event and an annotation say why.

Guarantees: one watch, or one of each namespace that is served, of pods that are on a node and do not run yet; a pod is
patched once; one that cannot be patched is tried again in the next turn, and said once. Rights: list, watch and patch
pods, of which a policy of the API server leaves this patch alone; create events.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.held_pods.held_pod import HeldPod, explain, make_patch, read_held
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.kubernetes.listing import Listing
from fleetprof_operator.profilerequests.notices import build_notice

log = logging.getLogger(__name__)

_QUERY: Final = {"fieldSelector": "status.phase=Pending,spec.nodeName!="}
_TURN_S: Final = 10.0
_CHANGED: Final = (404, 409, 422)  # gone, or no longer as we saw it


class Patience:
    """Let `run` run. `namespaces`: where to look; empty: everywhere.

    `serves`: whether a pod there is ours to care for; `on_release` is called for each that goes on.
    """

    def __init__(
        self,
        cluster: Cluster,
        patience_s: int,
        *,
        namespaces: Sequence[str],
        serves: Callable[[Mapping[str, Any]], bool],
        on_release: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._patience_s = patience_s
        self._serves = serves
        self._on_release = on_release
        self._clock = clock
        places = [f"/api/v1/namespaces/{one}/pods" for one in namespaces] or ["/api/v1/pods"]
        self._pods: list[Listing[HeldPod | None]] = [
            Listing(cluster, place, _QUERY, keep=read_held, whole=True) for place in places
        ]
        self._refused = ""

    async def run(self) -> None:
        """Until cancelled."""
        watching = [asyncio.create_task(pods.run()) for pods in self._pods]
        try:
            while True:
                await asyncio.sleep(_TURN_S)
                await self.release()
        finally:
            for watch in watching:
                watch.cancel()

    async def release(self) -> None:
        """One turn: every pod that has waited for too long goes on."""
        before = self._clock() - self._patience_s * 10**9
        for held in [held for pods in self._pods for held in pods.objects.values()]:
            if held is not None and held.since_unix_ns <= before and self._serves({"metadata": held.metadata}):
                await self._release(held)

    async def _release(self, held: HeldPod) -> None:
        why = explain(held, self._patience_s)
        namespace, name = held.metadata["namespace"], held.metadata["name"]
        try:
            await self._cluster.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", make_patch(held, why))
        except (ApiRefused, ApiUnreachable) as error:
            if not (isinstance(error, ApiRefused) and error.status in _CHANGED) and str(error) != self._refused:
                self._refused = str(error)
                log.warning("pod %s/%s cannot go on without its sidecar: %s", namespace, name, error)
            return
        self._refused = ""
        self._on_release()
        log.warning("pod %s/%s goes on without its sidecar: %s", namespace, name, why)
        message = f"goes on without its sidecar, and cannot be captured: {why}"
        event = build_notice(
            held.metadata, "Warning", "WithoutSidecar", message, self._clock(), about="Pod", version="v1"
        )
        try:
            await self._cluster.create(f"/api/v1/namespaces/{namespace}/events", event)
        except (ApiRefused, ApiUnreachable) as error:
            log.warning("no Event about pod %s/%s: %s", namespace, name, error)
