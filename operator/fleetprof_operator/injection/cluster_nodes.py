"""The cluster's nodes as they are now: which have the sidecar's image, and what decides who may go there.

Needs the verbs `list` and `watch` on nodes.
Guarantees: of a node only what is looked at stays in memory; while the API server is away the last known nodes stand.
"""

from collections.abc import Sequence

from fleetprof_operator.injection.pods.nodes import Node, read_node
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.kubernetes.listing import Listing


class ClusterNodes:
    """Let `run` run."""

    def __init__(self, cluster: Cluster, image: str) -> None:
        self._listing = Listing(cluster, "/api/v1/nodes", {}, keep=lambda node: read_node(node, image), whole=True)

    async def run(self) -> None:
        """Until cancelled."""
        await self._listing.run()

    def current(self) -> Sequence[Node] | None:
        """A copy, for other threads; None while they are not known."""
        return list(self._listing.objects.values()) if self._listing.complete else None
