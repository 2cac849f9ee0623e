"""Ranks enter a window as they enter its other iterations: what empty time hides there costs nothing, as elsewhere."""

import numpy as np
import pytest
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob, cost_when_lasting
from harness.traces.planted.shapes import JobShape, PlantedFault, led_in
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.simulated.cases import draw_simulated
from harness.traces.straggler_sections import stragglers_of, stragglers_of_traces

LATE_MS = 10


def loader_of(shape: JobShape, stage: int) -> PlantedFault:
    loading = np.zeros((shape.ranks, shape.iterations))
    loading[shape.rank(1, stage, 0)] = LATE_MS * 1000 * np.exp(0.1 * np.random.default_rng(1).standard_normal())
    return PlantedFault("data_loader", shape.rank(1, stage, 0), data_us=loading)


@pytest.mark.parametrize(("stage", "begun_together", "going_on"), [(0, 0.162, 0.162), (3, 0.015, 0.0)])
def test_a_last_stage_has_time_to_load_once_it_has_left_an_iteration_early(
    stage: int, begun_together: float, going_on: float
) -> None:
    """The planted truth: the first stage has no such time."""
    shape = JobShape(dp=2, pp=4, microbatches=4, layers=2, buckets=1, iterations=4, kernel_us=300)
    loading = np.zeros((shape.ranks, shape.iterations))
    loading[shape.rank(1, stage, 0)] = 8000
    fault = PlantedFault("data_loader", data_us=loading)
    cost = 1 - PlantedJob(shape, PlantedFault(), 0).length_ns / PlantedJob(shape, fault, 0).length_ns
    assert cost == pytest.approx(begun_together, abs=0.001)
    assert cost_when_lasting(shape, fault, PlantedFault(), 0) == pytest.approx(going_on, abs=0.001)


@pytest.mark.parametrize("iterations", [3, 8])
@pytest.mark.parametrize("begins_together", [False, True], ids=["within a job", "at its start"])
def test_a_loader_that_the_last_stage_has_time_for_is_nobodys_fault(iterations: int, *, begins_together: bool) -> None:
    """It costs 1 to 3 % of a job that begins with the window, and nothing of one that goes on."""
    shape = JobShape(dp=4, pp=4, microbatches=6, layers=2, buckets=1, iterations=iterations, kernel_us=300)
    fault = loader_of(shape, 3)
    assert cost_when_lasting(shape, fault, PlantedFault(), 3) == pytest.approx(0, abs=0.001)
    job = PlantedJob(shape, fault, 3) if begins_together else PlantedJob(*led_in(shape, fault), 3, ahead=1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 3)))
    assert found is not None
    assert (found.verdict, found.ranks) == ("nobody", [])
    (late,) = found.order
    assert (late.rank, late.cause) == (fault.rank, "data_loading")
    assert late.gain == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_loader_that_the_next_stages_wait_for_costs_what_a_job_that_goes_on_would_save(stage: int) -> None:
    shape = JobShape(dp=4, pp=4, microbatches=6, layers=2, buckets=1, iterations=5, kernel_us=300)
    fault = loader_of(shape, stage)
    job = PlantedJob(*led_in(shape, fault), 3, ahead=1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 3)))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(fault.rank, "data_loading")]
    assert found.gain == pytest.approx(cost_when_lasting(shape, fault, PlantedFault(), 3), abs=0.005)


def test_a_host_keeps_the_lead_that_its_rank_won_by_waiting_where_the_window_begins() -> None:
    """All load for as long as they compute, and rank 1 had the longest lead of them before it used it up."""
    found = stragglers_of_traces(draw_simulated("ddp", "all_load", 123000).job.traces())
    assert (found.verdict, found.ranks) == ("nobody", [])
    assert found.fidelity == pytest.approx(1, abs=0.01)
