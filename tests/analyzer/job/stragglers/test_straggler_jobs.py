"""Faults planted in real jobs over gloo, captured by the product: the right rank, and why, and where in its code."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_api.report.stragglers import Stragglers
from harness.training.local_job import LAUNCHER, LocalJob
from harness.training.local_system import Local, make_local, outcome
from harness.waiting import wait_until

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("straggler jobs")]  # in one worker, which starts one hub

TRAINING = Path(__file__).parents[3] / "harness" / "training" / "uneven_training.py"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    system = make_local(tmp_path_factory.mktemp("shared"))
    try:
        system.up()
        yield system
    finally:
        system.close()


def start(local: Local, name: str, ranks: int, *arguments: str) -> LocalJob:
    folder = local.folder / name
    marks = ["--progress", str(folder / "progress"), "--stop-when", str(folder / "stop")]
    job = local.run_command(name, sys.executable, str(LAUNCHER), str(ranks), str(TRAINING), *marks, *arguments)
    begun = [folder / f"progress.{rank}" for rank in range(ranks)]
    wait_until(lambda: all(mark.exists() for mark in begun) or job.process.poll() is not None, "the iterations", 120)
    assert job.process.poll() is None, job.output.read_text()[-3000:]
    return job


def judge(local: Local, job: LocalJob, cause: str) -> Stragglers:
    """The first verdict of up to five captures with this cause, else the last: other programs' load can hide a fault.

    How often a single capture is right is what bench/faults/planted_faults.py measures.
    """
    found: Stragglers | None = None
    for _ in range(5):
        status = local.await_end(local.submit(job.name, iterations=10, deadline_s=90))
        assert outcome(status)[0] == "True", str(status)
        found = local.report(status.uid).stragglers
        assert found is not None, str(status)
        if found.ranks and found.ranks[0].cause == cause:
            break
    assert job.stop() == 0
    assert found is not None
    return found


# name: ranks, arguments, the cause, the function that is planted
FAULTS = {
    "a sleeping data loader": (4, ("--fault", "loader"), "data_loading", "Batches.__getitem__"),
    "extra work on the host": (
        4,
        ("--fault", "host", "--fault-seconds", "0.15", "--pause", "0.15"),
        "host",
        "work_in_python",
    ),
    "a slow core": (4, ("--fault", "core", "--repeat", "16", "--pause", "0"), "host", None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_rank_at_fault_is_named_first_with_its_cause(local: Local, name: str) -> None:
    ranks, arguments, cause, function = FAULTS[name]
    found = judge(local, start(local, name.replace(" ", "-"), ranks, *arguments, "--fault-rank", str(ranks - 2)), cause)
    assert found.verdict == "straggler", found
    assert (found.ranks[0].rank, found.ranks[0].cause) == (ranks - 2, cause), found
    if function is not None:
        place = found.ranks[0].place
        assert place is not None
        assert (place.file, place.function) == (str(TRAINING), function)
