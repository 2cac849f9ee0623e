"""Jobs simulated by event, apart from the suite's own generator: rank, cause and worth, and nobody in healthy ones."""

import pytest
from harness.traces.simulated.cases import CAUSES, draw_simulated
from harness.traces.straggler_sections import stragglers_of_traces

GAIN_OFF = 0.05
FAULTS = [
    ("ddp", "slow_gpu", 1), ("sparse", "data_loader", 1000), ("pipeline", "throttling", 1000),
    # Hosts that ran ahead while they waited for the late one have no such lead without it.
    ("launch", "slow_host", 1), ("launch_hsdp", "data_loader", 1001),
    # Gathers that are early on a late rank would not hold it up at its peers' pace.
    ("fsdp", "slow_host", 1000), ("hsdp", "slow_host", 1000),
    # Launch calls of a slow host are no work of its device.
    ("ddp", "slow_host", 1000), ("launch", "gc", 1001),
    # A batch that is copied from ordinary memory while the host waits, without a range that says so.
    ("sparse", "slow_copy", 3000),
    # So long that its stream is busier than the one that trains.
    ("sparse", "slow_copy", 97002),
    # What a host waits before it has launched a row of the recording is no time of its own.
    ("sparse", "slow_host", 106002),
    # Hosts that wait for a part of what they launched, as where gathers are held back, gain no lead.
    ("fsdp", "gc", 90000), ("fsdp", "data_loader", 90002),
    # Hosts that wait for an earlier layer: without that they lead so far that the fault shows once in ten iterations.
    ("fsdp", "data_loader", 106001), ("hsdp", "data_loader", 106000), ("hsdp", "gc", 106000),
    # In all iterations but one.
    ("hsdp", "throttling", 4000), ("tp", "gc", 4000),
    # In three iterations, in which its only peer is early.
    ("pipeline", "throttling", 101001),
    # As much work as the peers', where only the host shows the fault.
    ("accumulation", "data_loader", 3001), ("launch_hsdp", "gc", 3001),
    # Lengths, or tokens per expert, that differ from rank to rank and from iteration to iteration.
    ("lengths", "slow_gpu", 5000), ("lengths", "throttling", 5001), ("lengths", "data_loader", 5001),
    ("lengths_fsdp", "throttling", 6002), ("lengths_fsdp", "gc", 6004), ("lengths_fsdp", "slow_gpu", 6000),
    ("experts", "unequal_work", 6002), ("experts", "gc", 5001), ("experts_fsdp", "throttling", 6003),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "kind", "seed"), FAULTS)
def test_the_fault_is_found_with_its_cause_and_worth(layout: str, kind: str, seed: int) -> None:
    case = draw_simulated(layout, kind, seed)
    found = stragglers_of_traces(case.job.traces())
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.job.fault.rank, CAUSES[kind])]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)


def test_a_stage_is_heavy_beside_receives_that_stood_behind_others_before_the_window() -> None:
    case = draw_simulated("pipeline", "heavy_stage", 3001)
    found = stragglers_of_traces(case.job.traces())
    assert {(one.rank, one.cause) for one in found.ranks} == {
        (rank, "stage_imbalance") for rank in case.job.fault.ranks
    }
    assert found.fidelity == pytest.approx(1, abs=0.003)
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)


def test_a_stage_whose_work_would_cost_more_elsewhere_is_not_heavy() -> None:
    """It takes 27 % longer than the others, which work while it does."""
    case = draw_simulated("pipeline", "heavy_stage", 97001)
    found = stragglers_of_traces(case.job.traces())
    assert case.gain < 0
    assert (found.verdict, found.ranks) == ("nobody", [])


HEALTHY = [
    ("ddp", 1), ("hsdp", 1), ("launch", 1), ("pipeline", 1),
    ("pipeline", 870_007),  # kernels beside a receive that waits are slower for a while: 1.4 % of the iteration
]  # fmt: skip


@pytest.mark.parametrize(("layout", "seed"), HEALTHY)
def test_nobody_is_named_in_a_healthy_job(layout: str, seed: int) -> None:
    found = stragglers_of_traces(draw_simulated(layout, "none", seed).job.traces())
    assert (found.verdict, found.ranks, found.slow_links) == ("nobody", [], [])
