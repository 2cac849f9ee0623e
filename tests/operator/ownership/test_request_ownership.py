"""The requests that a release serves: a table of what is on them, and of namespaces with a release of their own."""

import asyncio
from typing import Any

import pytest
from fleetprof_api.process.kubernetes_errors import ApiUnreachable
from fleetprof_operator.ownership.request_ownership import CLUSTER_FINALIZER, NAMESPACE_FINALIZER, RequestOwnership
from harness.kubernetes.memory_cluster import MemoryCluster

LEASES = "/apis/coordination.k8s.io/v1/leases"


@pytest.mark.parametrize(
    ("namespace", "finalizers", "the_clusters", "the_namespaces"),
    [
        ("team-a", [], True, True),  # which watches its own namespaces only
        ("team-b", [], False, True),
        ("kube-system", [], True, True),  # the Lease there stands for the cluster
        ("team-b", [CLUSTER_FINALIZER], True, False),  # begun before team-b had a release
        ("team-a", [NAMESPACE_FINALIZER], False, True),  # its namespace's release went meanwhile
        ("team-b", [CLUSTER_FINALIZER, NAMESPACE_FINALIZER], True, False),  # both at once: one rule for both
        ("team-a", ["example.com/keep"], True, True),
    ],
)
async def test_who_serves_a_request(
    namespace: str, finalizers: list[str], the_clusters: bool, the_namespaces: bool
) -> None:
    api = MemoryCluster()
    for lease in ("kube-system", "team-b"):
        metadata = {"name": "fleetprof", "namespace": lease, "uid": lease, "resourceVersion": "1"}
        api.put(f"{LEASES}/{lease}", {"metadata": metadata})
    cluster: Any = api
    wide = RequestOwnership(cluster, namespaced=False, own_lease="kube-system")
    narrow = RequestOwnership(cluster, namespaced=True, own_lease="team-b")
    with pytest.raises(ApiUnreachable, match="not listed yet"):
        wide.require()
    watching = asyncio.create_task(wide.run())
    try:
        async with asyncio.timeout(60):
            while not wide.is_known():
                await asyncio.sleep(0)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    body = {"metadata": {"namespace": namespace, "finalizers": finalizers}}
    assert (wide.serves(body), narrow.serves(body)) == (the_clusters, the_namespaces)
