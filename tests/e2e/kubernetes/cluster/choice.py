"""The choice of a cluster: KUBECONFIG's when told so, kind where a container engine answers, else the local one."""

import os

from cluster.current import CurrentCluster
from cluster.images.tools import find_engine
from cluster.kind import KindCluster
from cluster.local.local_cluster import LocalCluster
from cluster.refusal import NoCluster

Cluster = LocalCluster | KindCluster | CurrentCluster


def choose_cluster() -> Cluster:
    """The cluster to use, running or not. Raises NoCluster with the reason and the next step where none can be had."""
    wanted = os.environ.get("E2E_CLUSTER", "")
    if wanted == "current":
        return CurrentCluster()
    if wanted not in ("", "kind", "local"):
        raise NoCluster(f"E2E_CLUSTER={wanted}: must be current, kind or local; unset, the cluster is chosen")
    engine = find_engine() if wanted != "local" else None
    if engine is not None:
        return KindCluster(engine)
    if wanted == "kind":
        raise NoCluster("E2E_CLUSTER=kind needs Docker or Podman, and neither answers: start one")
    return LocalCluster()
