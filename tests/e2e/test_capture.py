"""The way a user goes: a running job of four ranks, one request, the same five iterations on every rank, a report."""

import json
import os
import sys

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import RankState
from harness.training.local_system import Local, outcome, states, wait_until

pytestmark = pytest.mark.torch

PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: "torch-of-" + path.split(os.sep)[-3])
def test_all_ranks_record_the_same_iterations(local: Local, python: str) -> None:
    ranks = 4 if python == PYTHONS[0] else 2
    job = local.run("llama", python=python, ranks=ranks)
    job.await_steps()

    done = local.command("capture", "llama", "--iterations", "5", "-o", "json")

    assert done.returncode == 0, done.stderr
    uid = json.loads(done.stdout)["uid"]
    status = local.status(uid)
    assert outcome(status) == ("True", "Complete")
    assert states(status) == dict.fromkeys(range(ranks), "UPLOADED")
    assert status.start_mode == "step"
    report = local.report(uid)
    assert [rank.rank for rank in report.ranks] == list(range(ranks))
    for rank in report.ranks:
        assert [iteration.index for iteration in rank.iterations] == list(
            range(status.first_step, status.first_step + 5)
        )
        time = rank.time_ns
        assert time.span == time.compute + time.exposed_communication + time.exposed_memory + time.idle
        assert time.span > 0
        assert time.compute > 0
        assert time.overlapped_communication + time.exposed_communication > 0
    assert job.stop() == 0
    assert not list((local.state / "runs").glob("*/spool/*.gz")), "a stored trace stayed in the spool"


def test_without_the_agent_all_ranks_start_at_one_time(local: Local) -> None:
    job = local.run("llama", run_flags=("--no-agent",), ranks=2)
    job.await_steps(agents=0)
    uid = local.submit("llama", iterations=5)

    status = local.await_end(uid)

    assert outcome(status)[0] == "True", str(status)
    assert status.start_mode == "time"
    assert states(status) == dict.fromkeys(range(2), "UPLOADED")
    report = local.report(uid)
    assert all(rank.iterations for rank in report.ranks)
    assert job.stop() == 0


def test_a_single_process_is_captured(local: Local) -> None:
    job = local.run("alone", ranks=1)
    job.await_steps()
    uid = local.submit("alone", iterations=3, collect=["Shapes"])

    status = local.await_end(uid)

    assert outcome(status) == ("True", "Complete")
    assert [len(rank.iterations) for rank in local.report(uid).ranks] == [3]
    assert job.stop() == 0


def test_a_job_that_loads_its_data_is_captured_from_its_first_iterations_on(local: Local) -> None:
    """For longer than the hub gathers ranks, or takes a process of unknown role for a trainer."""
    job = local.run("slow", "--load", "20", ranks=2)
    wait_until(lambda: _count_waiting(local) == 2, "two ranks that wait", 120)

    done = local.command("capture", "slow", "--iterations", "3", "-o", "json")

    assert done.returncode == 0, done.stderr
    assert "2 of 2 ranks have made no optimizer step yet" in done.stderr
    uid = json.loads(done.stdout)["uid"]
    assert local.status(uid).start_mode == "step"
    assert [len(rank.iterations) for rank in local.report(uid).ranks] == [3, 3]
    assert job.stop() == 0


def _count_waiting(local: Local) -> int:
    processes = [process for sidecar in local.fleet().sidecars for process in sidecar.processes]
    return sum(process.agent_waits and process.role == pb.TRAINER for process in processes)


def test_a_second_capture_of_the_same_job_works(local: Local) -> None:
    job = local.run("twice", ranks=1)
    job.await_steps()

    outcomes = [outcome(local.await_end(local.submit("twice", iterations=2))) for _ in range(2)]

    assert outcomes == [("True", "Complete")] * 2
    assert job.stop() == 0


def test_chosen_ranks_only(local: Local) -> None:
    job = local.run("some", ranks=3)
    job.await_steps()
    uid = local.submit("some", iterations=2, ranks={"list": [2]})

    status = local.await_end(uid)

    assert states(status) == {2: RankState.UPLOADED}
    assert job.stop() == 0
