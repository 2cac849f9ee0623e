"""Two replicas of the operator. The one that serves goes during a capture, and the other brings it to its end.

How long nobody serves is printed; docs/install.md says it.
"""

from collections.abc import Callable, Iterator

import pytest
from fleetprof_api.ledger import RankState
from scene.api import Api
from scene.containers import held
from scene.installation import NAMESPACE, Installation
from scene.request import JobRequest
from scene.stages import StageSeconds
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

LONG = {"iterations": 20}


@pytest.fixture(scope="module")
def replicas(installation: Installation) -> Iterator[Installation]:
    """The installation with a replica that stands by."""
    installation.upgrade("operator.replicas=2")
    yield installation
    installation.upgrade("operator.replicas=1")


@pytest.fixture
def handing_over(capsys: pytest.CaptureFixture[str]) -> Iterator[StageSeconds]:
    stages = StageSeconds("From one replica to the next")
    yield stages
    with capsys.disabled():
        stages.print()


def test_a_replica_that_is_deleted_hands_its_captures_over(
    api: Api,
    replicas: Installation,
    training: Training,
    make_request: Callable[..., JobRequest],
    handing_over: StageSeconds,
) -> None:
    first = replicas.leader()
    request = make_request(training, "handed-over", window=LONG)
    request.await_states(RankState.STARTED, ranks=4)

    with handing_over.stage("deleted in order"):
        api.kubectl("delete", "pod", first, "-n", NAMESPACE, "--wait=false")
        replicas.await_leader_after(first)

    request.await_end()
    assert request.outcome() == ("True", "Complete"), request.describe()


@pytest.mark.nightly
def test_a_replica_that_hangs_is_replaced_and_comes_back_to_stand_by(
    replicas: Installation, training: Training, make_request: Callable[..., JobRequest], handing_over: StageSeconds
) -> None:
    first = replicas.leader()
    (pod,) = [each for each in replicas.pods("operator") if each["metadata"]["name"] == first]
    request = make_request(training, "left-alone", window=LONG)
    request.await_states(RankState.STARTED, ranks=4)

    with held(pod, "operator"):
        with handing_over.stage("hangs, as with its node"):
            second = replicas.await_leader_after(first)
        request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()
    again = make_request(training, "after-the-hang")
    again.await_end()
    assert again.outcome() == ("True", "Complete"), again.describe()
    assert replicas.leader() == second
