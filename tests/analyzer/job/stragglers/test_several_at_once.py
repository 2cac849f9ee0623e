"""Jobs in which more than one thing takes time: each gain is what its own cause costs, and nobody is blamed for all."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.verdict import find_stragglers
from harness.traces.foreign_layouts import draw_foreign
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import Job
from harness.traces.planted.shapes import Fault, Shape
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of

CLEAR = Clarity()
GAIN_OFF = 0.03


def judged(job: Job) -> Judgement:
    found = find_stragglers(operations_of(job, traces_of(job, CLEAR, 1)))
    assert found is not None
    return found


def cost(shape: Shape, fault: Fault, mended: Fault) -> float:
    """Share of the job's time that goes with what `mended` lacks."""
    return 1 - Job(shape, mended, 1).length_ns / Job(shape, fault, 1).length_ns


def data_us(shape: Shape, *cells: tuple[int, int, float]) -> np.ndarray:
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
