"""Whatever of ours or around us dies during a capture: the ledger says exactly what became of each rank."""

from collections.abc import Callable, Iterator

import pytest
from fleetprof_api.ledger import RankState
from scene.api import Api
from scene.containers import kill
from scene.installation import Installation
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

LONG = {"iterations": 40}
ALL_UPLOADED = dict.fromkeys(range(2), "UPLOADED")


@pytest.fixture(scope="module")
def training(api: Api, team: str) -> Iterator[Training]:
    """Two ranks around which the file's tests break things. Its last test ends them; here they are only removed."""
    shared = Training(api, team, "unlucky", ranks_per_pod=2)
    try:
        shared.start()
        shared.await_steps()
        yield shared
    finally:
        shared.remove()


def test_the_operator_is_killed_while_ranks_record(
    installation: Installation, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "operator-killed", window=LONG)
    request.await_states(RankState.STARTED, ranks=2)

    installation.kill_operator()

    request.await_end()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == ALL_UPLOADED


def test_the_sidecar_is_killed_while_ranks_record(training: Training, make_request: Callable[..., JobRequest]) -> None:
    request = make_request(training, "sidecar-killed", window=LONG)
    request.await_states(RankState.STARTED, ranks=2)

    kill(training.list_pods()[0], "fleetprof")

    request.await_end()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == ALL_UPLOADED


def test_the_store_is_down_while_traces_leave(
    store: StoreInCluster, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "store-down", window=LONG)
    request.await_states(RankState.STARTED, ranks=2)
    store.go_down()
    try:
        request.await_condition("Captured", "True", "AllCaptured")
        assert request.outcome()[0] == "Unknown"
        assert store.keys(training.namespace, request.uid) == ["ledger.json", "request.json"]
    finally:
        store.come_back()

    request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == ALL_UPLOADED


def test_the_trainer_is_deleted_while_it_records(
    api: Api, team: str, start_training: Callable[..., Training], make_request: Callable[..., JobRequest]
) -> None:
    training = start_training(team, "deleted", ranks_per_pod=2)
    request = make_request(training, "trainer-deleted", window=LONG)
    request.await_states(RankState.STARTED, ranks=2)

    api.delete("Job", training.name, team, "batch/v1")

    request.await_end()
    assert request.outcome() == ("False", "AllRanksFailed"), request.describe()
    assert request.states() == {0: "FAILED", 1: "FAILED"}
    assert set(request.reasons().values()) <= {"ProcessExited", "ProcessKilled"}
    failures = request.get()["status"]["failures"]
    assert {each["reason"] for each in failures} == set(request.reasons().values())
    assert sorted(rank for each in failures for rank in each["firstRanks"]) == [0, 1]


def test_the_training_ran_as_if_nothing_had_died(training: Training) -> None:
    training.finish()

    training.assert_undisturbed()
