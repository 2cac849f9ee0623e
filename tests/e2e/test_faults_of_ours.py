"""Our own processes die at every state of a capture: the training goes on, and a finished trace is never lost."""

import os
import re
import signal
import time

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, failures, outcome
from harness.waiting import wait_until

pytestmark = pytest.mark.torch

STATES = [RankState.ASKED, RankState.ARMED, RankState.STARTED, RankState.WRITTEN]


@pytest.fixture(scope="module")
def alone(hub: Local) -> LocalJob:
    """A job of one process whose hub is killed."""
    return hub.run_shared("alone", ranks=1)


def test_when_all_orders_arrive_too_late_a_second_start_is_agreed_on(hub: Local) -> None:
    llama = hub.run_shared("llama", ranks=2)
    sidecar = llama.sidecar_pid()
    os.kill(sidecar, signal.SIGSTOP)  # the hub still has its latest word, and plans a start within 3 s
    try:
        uid = hub.submit("llama", iterations=5)
        hub.await_state(uid, RankState.ASKED, ranks=2)
        time.sleep(8)
    finally:
        os.kill(sidecar, signal.SIGCONT)

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    resolved = next(c.message for c in status.conditions if c.type == "TargetsResolved")
    assert re.search(
        r"a second start, because no rank took its order before the first \(2 (TooLate|NotPolling)\)", resolved
    )
    report = hub.report(uid)
    assert [len(rank.iterations) for rank in report.ranks] == [5, 5]
    assert llama.stop() == 0


@pytest.mark.parametrize("state", STATES)
def test_sidecar_killed(hub: Local, state: RankState) -> None:
    # A job of its own: after a sidecar has died, Kineto asks more seldom for a while.
    llama = hub.run_shared(f"llama-{state.lower()}", ranks=2)
    uid = hub.submit(llama.name, iterations=20)
    hub.await_state(uid, state, ranks=2)
    os.kill(llama.sidecar_pid(), signal.SIGKILL)

    status = hub.await_end(uid)

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
    llama.await_steps()  # which the sidecar that came in its place has heard of
    again = hub.await_end(hub.submit(llama.name, iterations=5))
    # That all ranks begin with one step is asserted where nothing else keeps the machine busy (test_capture).
    assert (outcome(again)[0], failures(again)) == ("True", {}), str(again)
    assert llama.stop() == 0  # as if no sidecar had died


@pytest.mark.parametrize("state", STATES)
def test_hub_killed(hub: Local, alone: LocalJob, state: RankState) -> None:
    alone.await_steps()  # which the hub of the last test had heard, and this one has not
    uid = hub.submit("alone", iterations=20)
    hub.await_state(uid, state)
    hub.kill_hub()
    time.sleep(1)
    hub.up()

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)


def test_the_job_outlives_hub_and_sidecar(hub: Local, alone: LocalJob) -> None:
    """Nor did those hubs that died before make it fail."""
    hub.kill_hub()
    os.kill(alone.sidecar_pid(), signal.SIGKILL)

    assert alone.stop() == 0


def test_stopping_the_hub_while_nothing_runs_leaves_no_file(local: Local) -> None:
    assert local.hub is not None
    local.hub.send_signal(signal.SIGINT)
    assert local.hub.wait(30) in (0, 130)
    wait_until(lambda: not (local.state / "hub.json").exists(), "the hub's address to be withdrawn")
