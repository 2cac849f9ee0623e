"""A trainer that ends, however and whenever: the job's exit code stays its own, the request names the rank and why."""

import pytest
from fleetprof_api.ledger import RankState, Reason
from harness.training.local_system import Local, failures, outcome, states

pytestmark = pytest.mark.torch

#         fault     the exit code that a shell shows without fleetprof, the possible reasons of the ledger
FAULTS = [
    ("exit", 7, {Reason.PROCESS_EXITED}),
    ("raise", 1, {Reason.PROCESS_EXITED}),
    ("abort", 128 + 6, {Reason.PROCESS_KILLED}),
    ("kill", 128 + 9, {Reason.PROCESS_KILLED}),
    ("term", 128 + 15, {Reason.PROCESS_KILLED}),
]


@pytest.mark.parametrize(("fault", "code", "reasons"), FAULTS)
def test_during_a_capture(local: Local, fault: str, code: int, reasons: set[Reason]) -> None:
    job = local.run("doomed", "--fault", fault, "--fault-when", str(local.folder / "strike"), ranks=1)
    job.await_steps()
    uid = local.submit("doomed", iterations=100)
    local.await_state(uid, RankState.STARTED)
    (local.folder / "strike").touch()

    assert job.process.wait(60) == code, job.output.read_text()[-3000:]
    status = local.await_end(uid)

    assert outcome(status)[0] == "False"
    assert failures(status)[0] in reasons


@pytest.mark.parametrize(("fault", "code", "reasons"), FAULTS[:1] + FAULTS[3:4])
def test_between_order_and_start(local: Local, fault: str, code: int, reasons: set[Reason]) -> None:
    job = local.run("doomed", "--fault", fault, "--fault-when", str(local.folder / "strike"), ranks=1)
    job.await_steps()
    uid = local.submit("doomed", iterations=100)
    local.await_state(uid, RankState.ASKED)
    (local.folder / "strike").touch()

    assert job.process.wait(60) == code, job.output.read_text()[-3000:]
    status = local.await_end(uid)

    assert failures(status)[0] in reasons


@pytest.mark.parametrize(("fault", "code"), [("exit", 7), ("kill", 128 + 9)])
def test_before_a_request_there_is_nothing_to_capture(local: Local, fault: str, code: int) -> None:
    job = local.run("doomed", "--fault", fault, "--fault-when", str(local.folder / "strike"), ranks=1)
    job.await_steps()
    (local.folder / "strike").touch()
    assert job.process.wait(60) == code

    done = local.command("capture", "doomed", "--iterations", "2")

    assert done.returncode == 5, (done.stdout, done.stderr)
    assert "doomed" in done.stderr


@pytest.mark.parametrize(("fault", "code"), [("exit", 7), ("kill", 128 + 9)])
def test_after_its_trace_is_written(local: Local, fault: str, code: int) -> None:
    job = local.run("doomed", "--fault", fault, "--fault-when", str(local.folder / "strike"), ranks=1)
    job.await_steps()
    uid = local.submit("doomed", iterations=3)
    local.await_state(uid, RankState.WRITTEN)
    (local.folder / "strike").touch()

    assert job.process.wait(60) == code
    status = local.await_end(uid)

    assert outcome(status) == ("True", "Complete")


def test_one_rank_of_a_group_dies_during_a_capture(local: Local) -> None:
    job = local.run(
        "doomed", "--fault", "kill", "--fault-rank", "1", "--fault-when", str(local.folder / "strike"), ranks=2
    )
    job.await_steps()
    uid = local.submit("doomed", iterations=100)
    local.await_state(uid, RankState.STARTED)
    (local.folder / "strike").touch()

    assert job.process.wait(90) == 1  # torchrun's own answer to a dead worker
    status = local.await_end(uid)

    assert states(status) == {0: "FAILED", 1: "FAILED"}
    assert failures(status)[1] == Reason.PROCESS_KILLED


def test_torchrun_restarts_the_worker_group(local: Local) -> None:
    job = local.run(
        "phoenix",
        # gloo itself fails to meet again in one of five restarts
        *("--no-group", "--fault", "kill", "--fault-rank", "1", "--fault-when", str(local.folder / "strike")),
        ranks=2,
        launcher=("--max-restarts", "1"),
    )
    job.await_steps()
    uid = local.submit("phoenix", iterations=100)
    local.await_state(uid, RankState.STARTED)
    for progress in job.folder.glob("progress.*"):
        progress.unlink()
    (local.folder / "strike").touch()
    first = local.await_end(uid)
    job.await_steps()

    second = local.await_end(local.submit("phoenix", iterations=2))

    assert outcome(first)[0] == "False"
    assert outcome(second) == ("True", "Complete"), second
    assert job.stop() == 0
