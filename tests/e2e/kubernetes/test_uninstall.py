"""Uninstalling: what is armed is withdrawn, the training goes on, and no data is lost. Runs after all other files."""

from collections.abc import Callable

import pytest
from fleetprof_api.ledger import RankState
from scene.api import Api, wait_until
from scene.installation import NAMESPACE, Installation
from scene.request import API, KIND, JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]


def test_nothing_stays_armed_and_nothing_is_lost(
    api: Api,
    store: StoreInCluster,
    installation: Installation,
    training: Training,
    make_request: Callable[..., JobRequest],
) -> None:
    earlier = make_request(training, "done")
    earlier.await_end()
    kept = store.keys(training.namespace, earlier.uid)
    running = make_request(training, "running", window={"iterations": 100})  # longer than the uninstall takes
    running.await_states(RankState.STARTED, ranks=4)

    installation.uninstall()

    wait_until(lambda: not api.list("Pod", NAMESPACE), lambda: f"the end of all pods\n{api.explain(NAMESPACE)}", 60)
    assert running.reasons() == dict.fromkeys(range(4), "Cancelled")
    assert store.keys(training.namespace, earlier.uid) == kept
    found = api.get(KIND, earlier.name, training.namespace, API)
    assert found is not None, "the CRD is kept, and the requests with it"
    assert not found["metadata"].get("finalizers")
    training.finish()
    training.assert_undisturbed()
