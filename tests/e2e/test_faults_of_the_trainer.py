"""A trainer that ends, however and whenever: the job's exit code stays its own, the request names the rank and why."""

from typing import Any

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, failures, outcome, states

pytestmark = pytest.mark.torch

#         fault     the exit code that a shell shows without fleetprof, the possible reasons of the ledger
FAULTS = [
    ("exit", 7, {Reason.PROCESS_EXITED}),
    ("raise", 1, {Reason.PROCESS_EXITED}),
    ("abort", -6, {Reason.PROCESS_KILLED}),
    ("kill", -9, {Reason.PROCESS_KILLED}),
    ("term", -15, {Reason.PROCESS_KILLED}),
]


def run_doomed(hub: Local, name: str, fault: str, *, ranks: int = 1, rank: int = 0, **how: Any) -> LocalJob:
    """A job one rank of which meets this fault once the test touches `strike`; returns after its first iterations."""
    strike = str(hub.folder / name / "strike")
    job = hub.run(name, "--fault", fault, "--fault-rank", str(rank), "--fault-when", strike, ranks=ranks, **how)
    job.await_steps()
    return job


@pytest.mark.parametrize(("fault", "code", "reasons"), FAULTS)
def test_during_a_capture(hub: Local, fault: str, code: int, reasons: set[Reason]) -> None:
    job = run_doomed(hub, f"{fault}-during", fault)
    uid = hub.submit(job.name, iterations=50)
    hub.await_state(uid, RankState.STARTED)
    job.touch("strike")

    assert job.process.wait(60) == code, job.output.read_text()[-3000:]
    status = hub.await_end(uid)

    assert outcome(status)[0] == "False"
    assert failures(status)[0] in reasons


@pytest.mark.parametrize(("fault", "code", "reasons"), FAULTS[:1] + FAULTS[3:4])
def test_between_order_and_start(hub: Local, fault: str, code: int, reasons: set[Reason]) -> None:
    job = run_doomed(hub, f"{fault}-between", fault)
    uid = hub.submit(job.name, iterations=50)
    hub.await_state(uid, RankState.ASKED)
    job.touch("strike")

    assert job.process.wait(60) == code, job.output.read_text()[-3000:]
    status = hub.await_end(uid)

    assert failures(status)[0] in reasons


@pytest.mark.parametrize(("fault", "code"), [("exit", 7), ("kill", -9)])
def test_before_a_request_there_is_nothing_to_capture(hub: Local, fault: str, code: int) -> None:
    job = run_doomed(hub, f"{fault}-before", fault)
    job.touch("strike")
    assert job.process.wait(60) == code

    result = hub.command("capture", job.name, "--iterations", "2")

    assert result.returncode == 5, (result.stdout, result.stderr)
    assert job.name in result.stderr


@pytest.mark.parametrize(("fault", "code"), [("exit", 7), ("kill", -9)])
def test_after_its_trace_is_written(hub: Local, fault: str, code: int) -> None:
    job = run_doomed(hub, f"{fault}-after", fault)
    uid = hub.submit(job.name, iterations=3)
    hub.await_state(uid, RankState.WRITTEN)
    job.touch("strike")

    assert job.process.wait(60) == code
    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete")


def test_one_rank_of_a_group_dies_during_a_capture(hub: Local) -> None:
    job = run_doomed(hub, "one-of-two", "kill", ranks=2, rank=1, torchrun=())
    uid = hub.submit(job.name, iterations=50)
    hub.await_state(uid, RankState.STARTED)
    job.touch("strike")

    assert job.process.wait(90) == 1  # torchrun's own answer to a dead worker
    status = hub.await_end(uid)

    assert states(status) == {0: "FAILED", 1: "FAILED"}
    assert failures(status)[1] == Reason.PROCESS_KILLED


def test_torchrun_restarts_the_worker_group(hub: Local) -> None:
    job = hub.run(
        "phoenix",
        # gloo itself fails to meet again in one of five restarts
        *("--no-group", "--fault", "kill", "--fault-rank", "1", "--fault-when", str(hub.folder / "phoenix" / "strike")),
        ranks=2,
        torchrun=("--max-restarts", "1"),
    )
    job.await_steps()
    uid = hub.submit("phoenix", iterations=50)
    hub.await_state(uid, RankState.STARTED)
    for progress in job.folder.glob("progress.*"):
        progress.unlink()
    job.touch("strike")
    first = hub.await_end(uid)
    job.await_steps()

    second = hub.await_end(hub.submit("phoenix", iterations=2))

    assert outcome(first)[0] == "False"
    assert outcome(second) == ("True", "Complete"), second
    assert job.stop() == 0
