"""The way a user goes: a running job of four ranks, one request, the same five iterations on every rank, a report."""

import json
import os
import sys
from pathlib import Path

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import RankState
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, outcome, states
from harness.waiting import wait_until

pytestmark = pytest.mark.torch

PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)


@pytest.fixture(scope="module")
def llama(hub: Local) -> LocalJob:
    """A job of four ranks below torchrun that the next tests capture, and the last of them ends."""
    return hub.run_shared("llama", ranks=4, torchrun=())


@pytest.fixture(scope="module")
def alone(hub: Local) -> LocalJob:
    """A job of one process, the same way; with the whole of PyTorch."""
    return hub.run_shared("alone", ranks=1, environment={"WITH_COMPILER": "whole"})


def assert_recorded_as_one(hub: Local, job: LocalJob) -> None:
    """Captures five iterations as a user does: they are the same on every rank, and each of them adds up."""
    result = hub.command("capture", job.name, "--iterations", "5", "-o", "json")

    assert result.returncode == 0, result.stderr
    uid = json.loads(result.stdout)["uid"]
    status = hub.status(uid)
    assert outcome(status) == ("True", "Complete")
    assert states(status) == dict.fromkeys(range(job.world_size), "UPLOADED")
    assert status.start_mode == "step"
    report = hub.report(uid)
    assert [rank.rank for rank in report.ranks] == list(range(job.world_size))
    for rank in report.ranks:
        assert [iteration.index for iteration in rank.iterations] == list(
            range(status.first_step, status.first_step + 5)
        )
        time = rank.time_ns
        assert time.span == time.compute + time.exposed_communication + time.exposed_memory + time.idle
        assert time.span > 0
        assert time.compute > 0
        assert time.overlapped_communication + time.exposed_communication > 0


def spooled(hub: Local) -> list[Path]:
    """Traces that lie in a spool."""
    return list((hub.state / "runs").glob("*/spool/*.gz"))


def test_all_ranks_record_the_same_iterations(hub: Local, llama: LocalJob) -> None:
    assert_recorded_as_one(hub, llama)


def test_chosen_ranks_only(hub: Local, llama: LocalJob) -> None:
    uid = hub.submit("llama", iterations=2, ranks={"list": [2]})

    status = hub.await_end(uid)

    assert states(status) == {2: RankState.UPLOADED}


def test_a_single_process_is_captured(hub: Local, alone: LocalJob) -> None:
    uid = hub.submit("alone", iterations=3, collect=["Shapes"])

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete")
    assert [len(rank.iterations) for rank in hub.report(uid).ranks] == [3]


def test_modules_are_told_from_an_iteration_that_no_other_measure_counts(hub: Local, llama: LocalJob) -> None:
    uid = hub.submit("llama", iterations=2, collect=["ModuleTree"])

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete")
    report = hub.report(uid)
    assert [len(rank.iterations) for rank in report.ranks] == [2] * llama.world_size
    tree = report.module_tree
    assert tree is not None
    assert tree.ranks == llama.world_size
    assert tree.nodes[0].backward.host_ns > 0
    assert all(node.class_name and node.call_line for node in tree.nodes)


def test_a_second_capture_of_the_same_job_works(hub: Local, alone: LocalJob) -> None:
    outcomes = [outcome(hub.await_end(hub.submit("alone", iterations=2))) for _ in range(2)]

    assert outcomes == [("True", "Complete")] * 2


def test_the_trainings_ended_as_if_nobody_had_looked(hub: Local, llama: LocalJob, alone: LocalJob) -> None:
    assert [llama.stop(), alone.stop()] == [0, 0]
    assert spooled(hub) == [], "a stored trace stayed in the spool"


@pytest.mark.parametrize("python", PYTHONS[1:], ids=lambda path: "torch-of-" + path.split(os.sep)[-3])
def test_all_ranks_of_an_older_pytorch_record_the_same_iterations(hub: Local, python: str) -> None:
    job = hub.run("older", python=python, ranks=2, torchrun=())
    job.await_steps()

    assert_recorded_as_one(hub, job)

    assert job.stop() == 0
    assert spooled(hub) == []


def test_a_job_that_loads_its_data_is_captured_from_its_first_iterations_on(hub: Local) -> None:
    """For longer than the hub gathers ranks, or takes a process of unknown role for a trainer."""
    job = hub.run("slow", "--load", "20", ranks=2)
    wait_until(lambda: _count_waiting(hub) == 2, "two ranks that wait", 120)

    result = hub.command("capture", "slow", "--iterations", "3", "-o", "json")

    assert result.returncode == 0, result.stderr
    assert "2 of 2 ranks have made no optimizer step yet" in result.stderr
    uid = json.loads(result.stdout)["uid"]
    assert hub.status(uid).start_mode == "step"
    assert [len(rank.iterations) for rank in hub.report(uid).ranks] == [3, 3]
    assert job.stop() == 0


def _count_waiting(hub: Local) -> int:
    processes = [process for sidecar in hub.fleet().sidecars for process in sidecar.processes]
    return sum(process.agent_waits and process.role == pb.TRAINER for process in processes)
