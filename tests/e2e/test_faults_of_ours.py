"""Our own processes die at every state of a capture: the training goes on, and a finished trace is never lost."""

import os
import re
import signal
import time

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_system import Local, failures, outcome, wait_until

pytestmark = pytest.mark.torch

STATES = [RankState.ASKED, RankState.ARMED, RankState.STARTED, RankState.WRITTEN]


@pytest.mark.parametrize("state", STATES)
def test_sidecar_killed(local: Local, state: RankState) -> None:
    job = local.run("llama", ranks=2)
    job.await_steps()
    uid = local.submit("llama", iterations=40)
    local.await_state(uid, state, ranks=2)
    os.kill(job.sidecar_pid(), signal.SIGKILL)

    status = local.await_end(uid)

    if state is RankState.ASKED:
        # An order that the dead sidecar had not handed over is repeated while there is time; a client that is backing
        # off by then, or a step that has passed, ends the rank.
        assert outcome(status) == ("True", "Complete") or set(failures(status).values()) <= {
            Reason.TOO_LATE,
            Reason.SIDECAR_RESTARTED,
            Reason.NOT_POLLING,
            Reason.NOT_STARTED,
        }
    else:
        assert outcome(status) == ("True", "Complete"), str(status)
    again = local.await_end(local.submit("llama", iterations=2))
    assert outcome(again) == ("True", "Complete"), failures(again)
    assert job.stop() == 0


@pytest.mark.parametrize("state", STATES)
def test_hub_killed(local: Local, state: RankState) -> None:
    job = local.run("llama", ranks=1)
    job.await_steps()
    uid = local.submit("llama", iterations=40)
    local.await_state(uid, state)
    local.kill_hub()
    time.sleep(1)
    local.up()

    status = local.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    assert job.stop() == 0


def test_the_job_outlives_hub_and_sidecar(local: Local) -> None:
    job = local.run("llama", ranks=1)
    job.await_steps()
    local.kill_hub()
    os.kill(job.sidecar_pid(), signal.SIGKILL)

    assert job.stop() == 0


def test_when_all_orders_arrive_too_late_a_second_start_is_agreed_on(local: Local) -> None:
    job = local.run("llama", ranks=2)
    job.await_steps()
    sidecar = job.sidecar_pid()
    os.kill(sidecar, signal.SIGSTOP)  # the hub still has its latest word, and plans a start within 3 s
    try:
        uid = local.submit("llama", iterations=5)
        local.await_state(uid, RankState.ASKED, ranks=2)
        time.sleep(8)
    finally:
        os.kill(sidecar, signal.SIGCONT)

    status = local.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    resolved = next(c.message for c in status.conditions if c.type == "TargetsResolved")
    assert re.search(r"a second start, as no rank took its order before the first \(2 (TooLate|NotPolling)\)", resolved)
    report = local.report(uid)
    assert [len(rank.iterations) for rank in report.ranks] == [5, 5]
    assert job.stop() == 0


def test_stopping_the_hub_while_nothing_runs_leaves_no_file(local: Local) -> None:
    assert local.hub is not None
    local.hub.send_signal(signal.SIGINT)
    assert local.hub.wait(30) in (0, 130)
    wait_until(lambda: not (local.state / "hub.json").exists(), "the hub's address to be withdrawn")
