"""A job in a control group that a capture could get killed: it survives, and is captured as far as there is room."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.report.recording import MIB
from harness.memory.memory_group import MemoryGroup, find_obstacle, memory_group
from harness.training.local_system import Local
from harness.waiting import wait_until

pytestmark = pytest.mark.torch

JOB = Path(__file__).parents[1] / "harness" / "memory" / "memory_job.py"
EVERYTHING = ["Shapes", "Stacks"]


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    if obstacle := find_obstacle():
        if "cgroup" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(obstacle)
        pytest.skip(obstacle)
    with memory_group("e2e", 1000 * MIB) as made:
        yield made


def capture(local: Local, iterations: int) -> pb.CaptureStatus:
    uid = local.submit("small", iterations=iterations, collect=EVERYTHING, limits={"maxSlowdownPercent": 0})
    return local.await_end(uid)


@pytest.mark.attack
def test_a_request_that_would_have_the_trainer_killed_is_cut_to_what_fits(
    local: Local, group: MemoryGroup, tmp_path: Path
) -> None:
    stop = tmp_path / "stop-now"
    words = [sys.executable, str(JOB), "layers", "--pause", "0.4", "--stop-when", str(stop)]
    job = local.run_command("small", *group.entering(), *words)

    def trains() -> list[pb.Process]:
        assert job.process.poll() is None, job.output.read_text()[-3000:]
        processes = [process for sidecar in local.fleet().sidecars for process in sidecar.processes]
        return [process for process in processes if process.step.iteration_ns and process.memory_headroom_bytes]

    headroom = wait_until(trains, "the first iterations", 120)[0].memory_headroom_bytes
    assert 100 * MIB < headroom < 1000 * MIB

    first = capture(local, 3).ranks[0]
    # 100 iterations would take more than twice what there is: about 10,000 events each, 3,000 bytes per event. Kineto
    # ends its recording in a thread of its own: on a loaded machine there is more than was asked for.
    assert first.recording_cost.events > 3 * 9_000
    assert 2 * headroom < 100 * 9_000 * 3000
    status = capture(local, 100)

    (resolved,) = [c.message for c in status.conditions if c.type == "TargetsResolved"]
    assert "iterations instead of 100: rank 0 may take" in resolved
    (rank,) = status.ranks
    assert (pb.RankState.Name(rank.state), rank.reason) == ("UPLOADED", "")
    cost = rank.recording_cost
    assert 3 <= cost.iterations < 30
    assert 0 < cost.memory_before_bytes < cost.memory_peak_bytes
    # Most of what the capture took is given back.
    grown = cost.memory_peak_bytes - cost.memory_before_bytes
    assert cost.memory_after_bytes - cost.memory_before_bytes < grown // 2

    assert group.kills() == 0
    stop.touch()
    assert job.process.wait(90) == 0
