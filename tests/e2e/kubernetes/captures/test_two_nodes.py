"""A job with a pod on each of two nodes: all ranks agree on one start, and both pods deliver."""

from collections.abc import Callable, Iterator

import pytest
from cluster.choice import Cluster
from cluster.images.building import TRAINER, our_name
from cluster.local.local_cluster import LocalCluster
from cluster.local.second_node import TAINT
from scene.api import Api
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch, pytest.mark.nightly]


@pytest.fixture(scope="module")
def second_node(cluster: Cluster, api: Api) -> Iterator[None]:
    """A cluster of two nodes that take trainers."""
    if isinstance(cluster, LocalCluster):
        cluster.add_node([TRAINER, our_name("sidecar")])
        yield
        cluster.remove_node()
        return
    free = [node for node in api.list("Node") if not node["spec"].get("taints")]
    if len(free) < 2:
        pytest.skip("this cluster has one node that takes pods; with E2E_CLUSTER=local a second one is made")
    yield


def test_all_ranks_on_two_nodes_record_the_same_iterations(
    api: Api,
    store: StoreInCluster,
    team: str,
    second_node: None,
    start_training: Callable[..., Training],
    make_request: Callable[..., JobRequest],
) -> None:
    training = start_training(team, "far", pods=2, ranks_per_pod=1, one_per_node=True, tolerations=[TAINT])
    nodes = [pod["spec"]["nodeName"] for pod in training.list_pods()]
    assert len(set(nodes)) == 2, nodes

    request = make_request(training, "far")
    request.await_end()
    training.finish()

    training.assert_undisturbed()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == {0: "UPLOADED", 1: "UPLOADED"}
    ledger = request.ledger()
    assert sorted(entry.node_name for entry in ledger.entries) == sorted(nodes)
    assert ledger.first_step is not None
    wanted = list(range(ledger.first_step, ledger.first_step + 5))
    ranks = store.report(team, request.uid).ranks
    assert [[iteration.index for iteration in rank.iterations] for rank in ranks] == [wanted, wanted]
