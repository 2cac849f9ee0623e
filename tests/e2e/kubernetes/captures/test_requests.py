"""Requests that do not go the straight way: for a pod that cannot run, taken back, removed when their time is over.

Those that come too early or are suspended, and all ways of meeting: tests/operator/profilerequests/test_lives.py.
"""

from collections.abc import Callable

import pytest
from fleetprof_api.ledger import RankState
from scene.api import Api, wait_until
from scene.request import API, KIND, JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

LONG = {"iterations": 20}
ENDLESS = {"iterations": 100}  # of which the test sees no end


def test_a_request_says_why_pods_that_it_waits_for_do_not_run(
    api: Api, team: str, make_request: Callable[..., JobRequest]
) -> None:
    stuck = Training(api, team, "stuck", ranks_per_pod=1, resources={"requests": {"cpu": "1000"}})
    stuck.start()
    try:
        request = make_request(stuck, "for-stuck")
        wait_until(lambda: "not scheduled: Unschedulable" in str(request.get().get("status")), request.describe)
    finally:
        stuck.remove()


def test_a_request_that_is_deleted_while_ranks_record_leaves_no_trace(
    store: StoreInCluster, team: str, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "regretted", window=ENDLESS)
    request.await_states(RankState.STARTED, ranks=4)

    request.delete()

    ledger = request.ledger()
    assert ledger.outcome == "Cancelled"
    assert request.states() == dict.fromkeys(range(4), "FAILED")
    assert request.reasons() == dict.fromkeys(range(4), "Cancelled")
    assert store.keys(team, request.uid) == ["ledger.json", "request.json"]
    again = make_request(training, "after-regret")
    again.await_end()
    assert again.outcome() == ("True", "Complete"), again.describe()


def test_the_second_request_for_the_same_ranks_waits_for_its_turn(
    training: Training, make_request: Callable[..., JobRequest]
) -> None:
    first = make_request(training, "first", window=LONG)
    first.await_states(RankState.STARTED, ranks=4)
    second = make_request(training, "second")

    wait_until(lambda: second.conditions().get("TargetsResolved", ("", ""))[1] == "Queued", second.describe)
    assert "place 1 in the queue" in second.message("TargetsResolved")
    second.await_end()

    first.await_end()
    assert first.outcome() == ("True", "Complete"), first.describe()
    assert second.outcome() == ("True", "Complete"), second.describe()
    assert second.states() == dict.fromkeys(range(4), "UPLOADED")


def test_an_ended_request_goes_when_its_time_is_over(
    training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "short-lived", ttlSecondsAfterFinished=1)

    wait_until(lambda: request.api.get(KIND, request.name, request.namespace, API) is None, "the request's removal")

    ledger = request.ledger()
    assert ledger.outcome in ("Complete", "PartiallyCaptured"), ledger
