"""Requests that do not go the straight way: too early, taken back, two at once."""

from collections.abc import Callable

import pytest
from scene.api import Api, wait_until
from scene.request import API, KIND, Request
from scene.store import Store
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

LONG = {"iterations": 90}


def test_a_request_waits_for_pods_that_are_not_there_yet(
    api: Api, team: str, start_training: Callable[..., Training], make_request: Callable[..., Request]
) -> None:
    later = Training(api, team, "later", ranks_per_pod=2)
    request = make_request(later, "early")
    request.await_condition("TargetsResolved", "False", "NothingMatched")
    assert request.outcome()[0] == "Unknown"
    assert request.message("TargetsResolved")

    training = start_training(team, "later", ranks_per_pod=2)
    request.await_end()
    training.finish()

    training.assert_undisturbed()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == {0: "UPLOADED", 1: "UPLOADED"}


def test_a_request_says_why_pods_that_it_waits_for_do_not_run(
    api: Api, team: str, make_request: Callable[..., Request]
) -> None:
    stuck = Training(api, team, "stuck", ranks_per_pod=1, resources={"requests": {"cpu": "1000"}})
    stuck.start()
    try:
        request = make_request(stuck, "for-stuck")
        wait_until(lambda: "not scheduled: Unschedulable" in str(request.get().get("status")), request.describe)
    finally:
        stuck.remove()


def test_a_request_that_is_deleted_while_ranks_record_leaves_no_trace(
    store: Store, team: str, training: Training, make_request: Callable[..., Request]
) -> None:
    request = make_request(training, "regretted", window=LONG)
    request.await_states("STARTED", ranks=4)

    request.delete()

    ledger = request.ledger()
    assert ledger.outcome == "Cancelled"
    assert request.states() == dict.fromkeys(range(4), "FAILED")
    assert request.reasons() == dict.fromkeys(range(4), "Cancelled")
    assert store.keys(team, request.uid) == ["ledger.json", "request.json"]
    again = make_request(training, "after-regret")
    again.await_end()
    assert again.outcome() == ("True", "Complete"), again.describe()


def test_of_two_requests_for_the_same_ranks_the_second_is_refused(
    training: Training, make_request: Callable[..., Request]
) -> None:
    first = make_request(training, "first", window=LONG)
    first.await_states("ARMED", "STARTED", ranks=4)

    second = make_request(training, "second")
    second.await_end()
    first.await_end()

    assert second.outcome() == ("False", "AlreadyCapturing"), second.describe()
    assert "first" in second.message()
    assert first.outcome() == ("True", "Complete"), first.describe()
    assert first.states() == dict.fromkeys(range(4), "UPLOADED")


def test_a_suspended_request_begins_when_it_is_let_go(training: Training, make_request: Callable[..., Request]) -> None:
    request = make_request(training, "suspended", suspend=True)
    request.await_condition("Succeeded", "Unknown", "Suspended")

    request.api.patch(KIND, request.name, {"spec": {"suspend": False}}, request.namespace, API)
    request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()


def test_an_ended_request_goes_when_its_time_is_over(training: Training, make_request: Callable[..., Request]) -> None:
    request = make_request(training, "short-lived", ttlSecondsAfterFinished=1)

    wait_until(lambda: request.api.get(KIND, request.name, request.namespace, API) is None, "the request's removal")

    assert request.ledger().outcome == "Complete"


def test_the_training_ran_as_if_nobody_had_looked(training: Training) -> None:
    training.finish()

    training.assert_undisturbed()
