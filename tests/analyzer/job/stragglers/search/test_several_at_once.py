"""Jobs in which more than one thing takes time: each gain is what its own cause costs, and nobody is blamed for all."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.verdict import find_stragglers
from harness.traces.foreign_layouts import draw_foreign
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of

CLEAR = Clarity()
GAIN_OFF = 0.03


def judged(job: PlantedJob) -> Judgement:
    found = find_stragglers(operations_of(job, traces_of(job, CLEAR, 1)))
    assert found is not None
    return found


def cost(shape: JobShape, fault: PlantedFault, mended: PlantedFault) -> float:
    """Share of the job's time that goes with what `mended` lacks."""
    return 1 - PlantedJob(shape, mended, 1).length_ns / PlantedJob(shape, fault, 1).length_ns


def data_us(shape: JobShape, *cells: tuple[int, int, float]) -> np.ndarray:
    loading = np.zeros((shape.ranks, shape.iterations))
    for rank, iteration, time_us in cells:
        loading[rank, iteration] = time_us
    return loading


@pytest.mark.parametrize(("layout", "seed"), [
    ("gathers beside compute", 20292), ("gathers beside compute", 20380), ("pipeline without numbers", 20441),
])  # fmt: skip
def test_devices_of_one_kind_differ_though_half_of_them_are_alike_by_chance(layout: str, seed: int) -> None:
    _, traces, job = draw_foreign(layout, "none", seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert found.ranks == []


def test_a_peer_that_stalls_once_is_no_measure_of_what_a_pause_costs() -> None:
    shape = JobShape(dp=2, pp=2, microbatches=4, layers=2, iterations=12)
    pauses = np.zeros((shape.ranks, shape.iterations))
    pauses[0, [2, 5, 8, 11]] = 8_000
    (peer,) = (int(rank) for rank in shape.stage(0) if rank)
    stall = data_us(shape, (peer, 5, 30_000))
    both = PlantedFault("garbage_collection", 0, pause_us=pauses, pause_is_seen=False, data_us=stall)
    (first,) = judged(PlantedJob(shape, both, 1)).section.ranks
    assert first.rank == 0
    assert first.gain == pytest.approx(cost(shape, both, replace(both, pause_us=None)), abs=GAIN_OFF)


def test_work_that_moves_costs_nothing_for_batches_that_are_late() -> None:
    shape = JobShape(dp=8, layers=4, iterations=12)
    lengths = np.exp(0.2 * np.random.default_rng(3).standard_normal((shape.dp, shape.iterations, 1)))
    lengths /= lengths.mean(axis=1, keepdims=True)
    late = data_us(shape, (1, 3, 25_000), (4, 6, 25_000), (6, 8, 25_000))
    both = PlantedFault("moving_lengths", lengths=lengths, data_us=late)
    found = judged(PlantedJob(shape, both, 1)).section
    assert (found.verdict, found.cause) == ("moving_imbalance", "unequal_work")
    assert found.gain == pytest.approx(cost(shape, both, replace(both, lengths=None)), abs=0.05)


@pytest.mark.parametrize("shape", [
    JobShape(dp=8, layers=3, iterations=16), JobShape(dp=1, pp=4, microbatches=6, layers=2),
])  # fmt: skip
def test_what_slow_loaders_of_all_ranks_cost_holds_what_ranks_wait_for_others(shape: JobShape) -> None:
    noise = np.random.default_rng(4).standard_normal((shape.ranks, shape.iterations))
    slow = PlantedFault("data_loader", data_us=8_000 * np.exp(0.3 * noise))
    found = judged(PlantedJob(shape, slow, 1))
    assert found.section.ranks == []
    nothing = replace(shape, data_us=0)
    whole = 1 - PlantedJob(nothing, PlantedFault(), 1).length_ns / PlantedJob(shape, slow, 1).length_ns
    assert found.loading_gain == pytest.approx(whole, abs=0.06)  # a host's time before its launches is not told apart
