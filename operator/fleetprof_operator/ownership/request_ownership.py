"""The requests that this release serves, where others may be beside it.

A release for some namespaces takes these from the release for the whole cluster: its Lease `fleetprof` in a namespace
says so. A request that one of them has begun stays with it to the end, whatever becomes of the namespace.

Guarantees: derived from objects alone, so that two releases come to the same answer; a namespace is known to be
another's before requests are looked at. Right: list and watch Leases named `fleetprof`.
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.process.kubernetes_errors import ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.kubernetes.listing import Listing
from fleetprof_operator.ownership.lease import LEASE

CLUSTER_FINALIZER: Final = "fleetprof.io/capture"
"""On a request that the release for the whole cluster has begun."""
NAMESPACE_FINALIZER: Final = "fleetprof.io/namespaced-capture"
"""On one that a release for some namespaces has begun. They differ, since kopf takes off what it is told is its own."""


def choose_finalizer(*, namespaced: bool) -> str:
    """Under which finalizer a release holds requests: releases of both kinds may serve one cluster."""
    return NAMESPACE_FINALIZER if namespaced else CLUSTER_FINALIZER


class RequestOwnership:
    """`namespaced`: this release serves some namespaces, which it has to itself. Let `run` run for the other kind.

    `own_lease` is the namespace of the Lease that stands for the whole cluster; "": no other release is looked for.
    """

    def __init__(self, cluster: Cluster, *, namespaced: bool, own_lease: str = "") -> None:
        self.finalizer = choose_finalizer(namespaced=namespaced)
        self._namespaced = namespaced
        self._own_lease = own_lease
        self._has_neighbours = bool(own_lease) and not namespaced
        query = {"fieldSelector": f"metadata.name={LEASE}"}
        path = "/apis/coordination.k8s.io/v1/leases"
        self._leases = Listing(cluster, path, query, keep=_read_namespace)

    async def run(self) -> None:
        """Keeps track of the other releases until cancelled."""
        if self._has_neighbours:
            await self._leases.run()

    def is_known(self) -> bool:
        """Tells whether the other releases are."""
        return self._leases.complete or not self._has_neighbours

    def require(self) -> None:
        """Raises ApiUnreachable while the other releases are not known."""
        if not self.is_known():
            raise ApiUnreachable(self._leases.trouble or "the Leases of other releases are not listed yet")

    def serves(self, body: Mapping[str, Any]) -> bool:
        """Tells whether this request is ours."""
        finalizers = body["metadata"].get("finalizers") or ()
        if CLUSTER_FINALIZER in finalizers:
            return not self._namespaced
        if NAMESPACE_FINALIZER in finalizers or self._namespaced:
            return self._namespaced
        namespace = body["metadata"]["namespace"]
        return namespace == self._own_lease or namespace not in self._leases.objects.values()

    def holds(self, body: Mapping[str, Any]) -> bool:
        """Tells whether our finalizer is on this request: its deletion waits for us."""
        return self.finalizer in (body["metadata"].get("finalizers") or ())


def _read_namespace(metadata: Json) -> str:
    return str(metadata["namespace"])
