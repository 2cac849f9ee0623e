"""Requests that meet each other, are withdrawn, or name ranks that do not answer."""

import json
import signal
import sys

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_system import Local, failures, outcome, states, wait_until

pytestmark = pytest.mark.torch


def test_two_requests_for_the_same_ranks(local: Local) -> None:
    job = local.run("llama", ranks=1)
    job.await_steps()
    first = local.submit("llama", iterations=60)
    local.await_state(first, RankState.ASKED)

    second = local.await_end(local.submit("llama", iterations=2))

    assert outcome(second) == ("False", "AlreadyCapturing")
    assert outcome(local.await_end(first)) == ("True", "Complete")
    assert job.stop() == 0


@pytest.mark.parametrize("state", [RankState.ASKED, RankState.ARMED, RankState.STARTED, RankState.WRITTEN])
def test_cancel(local: Local, state: RankState) -> None:
    job = local.run("llama", ranks=2 if state is RankState.STARTED else 1)
    job.await_steps()
    uid = local.submit("llama", iterations=60)
    local.await_state(uid, state)
    local.cancel(uid)

    status = local.await_end(uid)

    assert outcome(status)[1] == "Cancelled", str(status)
    assert set(failures(status).values()) <= {Reason.CANCELLED}
    # Kineto's one slot is free again.
    assert outcome(local.await_end(local.submit("llama", iterations=2))) == ("True", "Complete")
    assert job.stop() == 0


def test_cancel_without_the_agent_ends_with_the_window(local: Local) -> None:
    job = local.run("llama", ranks=1, run_flags=("--no-agent",))
    job.await_steps(agents=0)
    uid = local.submit("llama", iterations=20)
    local.await_state(uid, RankState.ARMED)
    local.cancel(uid)

    status = local.await_end(uid)

    assert outcome(status)[1] == "Cancelled", str(status)
    # Kineto cannot stop a running window: the job is busy until it is over, and free again then.
    wait_until(lambda: outcome(local.await_end(local.submit("llama", iterations=2)))[0] == "True", "a free job")
    assert job.stop() == 0


def test_one_rank_never_answers(local: Local) -> None:
    job = local.run("llama", environment={"DEAF_RANK": "2"}, ranks=3)
    job.await_steps(agents=2)

    status = local.await_end(local.submit("llama", iterations=3))

    assert outcome(status)[0] == "True"
    assert outcome(status)[1] != "Complete"
    assert {rank for rank, state in states(status).items() if state == "UPLOADED"} == {0, 1}
    assert failures(status) == {2: Reason.NOT_POLLING}
    assert job.stop() == 0


def test_nothing_matches(local: Local) -> None:
    done = local.command("capture", "nobody", "-o", "json")

    assert done.returncode == 5, done.stderr
    assert "nobody" in done.stderr


def test_what_never_speaks_kineto_is_waited_for_with_the_reason(local: Local) -> None:
    job = local.run("deaf", ranks=1, environment={"DEAF_RANK": "0"})
    job.await_steps(agents=0)
    capture = local.begin("capture", "deaf")
    wait_until(lambda: "with KINETO_USE_DAEMON=1" in capture.said(), "the reason")

    capture.process.send_signal(signal.SIGINT)

    assert capture.process.wait(30) == 4, capture.said()
    assert job.stop() == 0


def test_the_command_line_prints_what_happened(local: Local) -> None:
    job = local.run("llama", ranks=2)
    job.await_steps()
    done = local.command("capture", "llama", "--iterations", "2", "-o", "json")
    uid = json.loads(done.stdout)["uid"]

    listed = json.loads(local.command("list", "-o", "json").stdout)
    report = json.loads(local.command("report", uid, "-o", "json").stdout)
    doctor = local.command("doctor", "--python", sys.executable, "-o", "json")

    assert uid in json.dumps(listed)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert doctor.returncode == 0, doctor.stdout
    assert job.stop() == 0
