"""A job whose trainers run without the agent: its windows begin at one time, and a withdrawn one ends by itself."""

import pytest
from fleetprof_api.ledger import RankState
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, outcome, states
from harness.waiting import wait_until

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def plain(hub: Local) -> LocalJob:
    """A job of two ranks that the next tests capture, and the last of them ends."""
    return hub.run_shared("plain", ranks=2, agents=0, run_flags=("--no-agent",))


def test_all_ranks_start_at_one_time(hub: Local, plain: LocalJob) -> None:
    uid = hub.submit("plain", iterations=5)

    status = hub.await_end(uid)

    assert outcome(status)[0] == "True", str(status)
    assert status.start_mode == "time"
    assert states(status) == dict.fromkeys(range(2), "UPLOADED")
    report = hub.report(uid)
    assert all(rank.iterations for rank in report.ranks)


def test_a_cancelled_capture_ends_with_its_window(hub: Local, plain: LocalJob) -> None:
    uid = hub.submit("plain", iterations=10)
    hub.await_state(uid, RankState.ARMED)
    hub.cancel(uid)

    status = hub.await_end(uid)

    assert outcome(status)[1] == "Cancelled", str(status)
    # Kineto cannot stop a running window: the job is busy until it is over, and free again then.
    wait_until(lambda: outcome(hub.await_end(hub.submit("plain", iterations=2)))[0] == "True", "a free job")


def test_the_training_ended_as_if_nobody_had_looked(plain: LocalJob) -> None:
    assert plain.stop() == 0
