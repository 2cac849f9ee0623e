"""Requests that meet each other, are withdrawn, or name ranks that do not answer."""

import json
import signal
import sys

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, failures, outcome, states
from harness.waiting import wait_until

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def llama(hub: Local) -> LocalJob:
    """A job of two ranks that the next tests capture, and the last of them ends."""
    return hub.run_shared("llama", ranks=2)


@pytest.fixture(scope="module")
def alone(hub: Local) -> LocalJob:
    """A job of one process, the same way."""
    return hub.run_shared("alone", ranks=1)


def test_two_requests_for_the_same_ranks(hub: Local, alone: LocalJob) -> None:
    first = hub.submit("alone", iterations=30)
    hub.await_state(first, RankState.ASKED)

    second = hub.await_end(hub.submit("alone", iterations=2, conflict="Fail"))

    assert outcome(second) == ("False", "AlreadyCapturing")
    assert outcome(hub.await_end(first)) == ("True", "Complete")


@pytest.mark.parametrize("state", [RankState.ASKED, RankState.ARMED, RankState.WRITTEN])
def test_cancel(hub: Local, alone: LocalJob, state: RankState) -> None:
    assert_cancelled(hub, alone, state)


def test_cancel_while_two_ranks_record(hub: Local, llama: LocalJob) -> None:
    assert_cancelled(hub, llama, RankState.STARTED)


def assert_cancelled(hub: Local, job: LocalJob, state: RankState) -> None:
    """A request is withdrawn once a rank has come so far; another one finds the job free."""
    uid = hub.submit(job.name, iterations=30)
    hub.await_state(uid, state)
    hub.cancel(uid)

    status = hub.await_end(uid)

    assert outcome(status)[1] == "Cancelled", str(status)
    assert set(failures(status).values()) <= {Reason.CANCELLED}
    # Kineto's one slot is free again.
    assert outcome(hub.await_end(hub.submit(job.name, iterations=2))) == ("True", "Complete")


def test_the_command_line_prints_what_happened(hub: Local, llama: LocalJob) -> None:
    result = hub.command("capture", "llama", "--iterations", "2", "-o", "json")
    uid = json.loads(result.stdout)["uid"]

    listed = json.loads(hub.command("list", "-o", "json").stdout)
    report = json.loads(hub.command("report", uid, "-o", "json").stdout)
    doctor = hub.command("doctor", "--python", sys.executable, "-o", "json")

    assert uid in json.dumps(listed)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert doctor.returncode == 0, doctor.stdout


def test_the_trainings_ended_as_if_nobody_had_asked(llama: LocalJob, alone: LocalJob) -> None:
    assert [llama.stop(), alone.stop()] == [0, 0]


def test_one_rank_never_answers(hub: Local) -> None:
    job = hub.run("partly-deaf", environment={"DEAF_RANK": "2"}, ranks=3)
    job.await_steps(agents=2)

    status = hub.await_end(hub.submit("partly-deaf", iterations=3))

    assert outcome(status)[0] == "True"
    assert outcome(status)[1] != "Complete"
    assert {rank for rank, state in states(status).items() if state == "UPLOADED"} == {0, 1}
    assert failures(status) == {2: Reason.NOT_POLLING}
    assert job.stop() == 0


def test_nothing_matches(hub: Local) -> None:
    result = hub.command("capture", "nobody", "-o", "json")

    assert result.returncode == 5, result.stderr
    assert "nobody" in result.stderr


def test_what_never_speaks_kineto_is_waited_for_with_the_reason(hub: Local) -> None:
    job = hub.run("deaf", ranks=1, environment={"DEAF_RANK": "0"})
    job.await_steps(agents=0)
    capture = hub.begin("capture", "deaf")
    wait_until(lambda: "with KINETO_USE_DAEMON=1" in capture.read_output(), "the reason")

    capture.process.send_signal(signal.SIGINT)

    assert capture.process.wait(30) == 4, capture.read_output()
    assert job.stop() == 0
