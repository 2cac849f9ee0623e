"""Jobs laid out as other people lay them out: the planted rank and cause are found, and nobody where nobody is late."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.operations import KINDS
from harness.traces.foreign_layouts import draw_foreign
from harness.traces.planted.faults import CAUSES, OFTEN, draw, gain_of_usual_devices, operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of

RIGHT = [
    ("pipeline with numbers", 0), ("pipeline without numbers", 0), ("pipeline without numbers", 1),
    ("a stray send", 0), ("a stray send", 2), ("hybrid sharding", 1), ("hybrid sharding", 2),
    ("gradients behind tensors", 0), ("gradients behind tensors", 1), ("launch-bound", 0), ("launch-bound", 1),
    ("gathers beside compute", 0), ("gathers beside compute", 1), ("receives beside compute", 0),
    ("launch-bound hybrid sharding", 0), ("launch-bound hybrid sharding", 1),
]  # fmt: skip
GAIN_OFF = 0.05


@pytest.mark.parametrize("kind", ["slow_gpu", "slow_host", "data_loader"])
@pytest.mark.parametrize(("layout", "seed"), RIGHT)
def test_the_fault_is_found_with_its_cause_and_worth(layout: str, seed: int, kind: str) -> None:
    case, traces, job = draw_foreign(layout, kind, seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    if case.gain < 0.012:  # something else hides it
        assert [one.rank for one in found.ranks if one.rank not in case.culprits] == []
        return
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.fault.rank, CAUSES[kind])]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)


@pytest.mark.parametrize(("layout", "seed"), RIGHT)
def test_nobody_is_named_in_a_healthy_job(layout: str, seed: int) -> None:
    _, traces, job = draw_foreign(layout, "none", seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert (found.verdict, found.ranks, found.slow_links) == ("nobody", [], [])


@pytest.mark.parametrize(
    ("layout", "seed"),
    [("gradients behind tensors", 99001), ("launch-bound hybrid sharding", 99003), ("a stray send", 106001)],
)
def test_a_loader_that_costs_3_percent_is_told_from_the_other_noise_of_hosts(layout: str, seed: int) -> None:
    """It lies before an iteration's first collective, and so before the window's."""
    case, traces, job = draw_foreign(layout, "data_loader", seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.fault.rank, "data_loading")]
    assert found.gain == pytest.approx(case.gain, abs=0.01)


def test_devices_that_chance_made_slower_are_named_with_what_they_cost() -> None:
    """Two of eight are 4 % slower than the others, which are within 1 % of each other."""
    case, traces, job = draw_foreign("gradients behind tensors", "none", 90193)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert {(one.rank, one.cause) for one in found.ranks} == {(0, "slow_gpu"), (2, "slow_gpu")}
    assert found.gain == pytest.approx(gain_of_usual_devices(case, job, [0, 2]), abs=0.005)


@pytest.mark.parametrize(("ranks", "least", "most"), [([0, 2], 0.03, 0.04), ([0], -0.001, 0.002), ([], 0.0, 0.0)])
def test_what_usual_devices_would_save_is_a_job_that_ran(ranks: list[int], least: float, most: float) -> None:
    """Rank 2 hides what rank 0 costs."""
    case, _, job = draw_foreign("gradients behind tensors", "none", 90193)
    assert least <= gain_of_usual_devices(case, job, ranks) <= most


@pytest.mark.parametrize(("layout", "seed"), [("hybrid sharding", 101348), ("launch-bound", 101422)])
def test_small_gaps_that_come_and_go_are_no_pauses_where_hosts_vary_by_as_much(layout: str, seed: int) -> None:
    _, traces, job = draw_foreign(layout, "none", seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert (found.verdict, found.ranks) == ("nobody", [])


def test_a_host_whose_lead_chance_used_up_in_six_of_ten_iterations_is_not_late() -> None:
    _, traces, job = draw_foreign("gradients behind tensors", "none", 104325)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert (found.verdict, found.ranks) == ("nobody", [])


def test_pairs_that_say_nobody_leave_the_collectives_matched_and_are_said() -> None:
    _, traces, job = draw_foreign("pipeline without numbers", "none", 0)
    operations = operations_of(job, traces)
    first = operations[0]
    sends = np.flatnonzero(first.columns.kind == KINDS.index("send"))[:3]
    peer = first.columns.peer.copy()
    peer[sends] = -1
    lost = replace(first, columns=replace(first.columns, peer=peer))
    found = stragglers_of([lost, *operations[1:]])
    assert found is not None
    assert found.verdict == "nobody"
    assert found.unmatched == 2 * len(sends)  # and the receives at their other ends
    (sentence,) = (text for text in found.unidentifiable if "send" in text)
    assert sentence.startswith(f"For {found.unmatched:,} of {found.operations:,} operations (")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", OFTEN)
def test_what_strikes_most_iterations_is_no_slow_part(kind: str, seed: int) -> None:
    """Pauses and clocks that come and go, though most iterations have them: two at least do not."""
    case, traces, job = draw(kind, seed, [JobShape(dp=8, layers=3)])
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.fault.rank, CAUSES[kind])]


def test_among_many_ranks_one_is_late_that_is_not_in_two_iterations() -> None:
    case, traces, job = draw("throttling_often", 90002)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.fault.rank, "throttling")]


@pytest.mark.parametrize(("pp", "stage", "factor"), [(4, 1, 20.0), (4, 2, 20.0), (2, 1, 20.0), (4, 1, 1.0)])
def test_a_slow_group_of_one_stage_is_told_by_those_of_the_others(pp: int, stage: int, factor: float) -> None:
    shape = JobShape(dp=4, pp=pp, microbatches=2, layers=2, kernel_us=100)
    ranks = tuple(shape.stage(stage).tolist())
    slow = PlantedFault("slow_link", link_ranks=ranks, link_families=("dp",), link_factor=factor)
    job, healthy = PlantedJob(shape, slow, 1), PlantedJob(shape, PlantedFault(), 1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)))
    assert found is not None
    assert {tuple(link.ranks) for link in found.slow_links} == ({ranks} if factor > 1 else set())
    assert (found.verdict, found.ranks) == ("slow_link" if factor > 1 else "nobody", [])
    assert found.gain == pytest.approx(1 - healthy.length_ns / job.length_ns, abs=GAIN_OFF)


@pytest.mark.parametrize("dp", [1, 4])
def test_a_slow_loader_goes_before_a_stage_that_is_somewhat_heavy(dp: int) -> None:
    shape = JobShape(dp=dp, pp=4, microbatches=6, layers=8, kernel_us=150)
    loading = np.zeros((shape.ranks, shape.iterations))
    loading[0] = 5000
    both = PlantedFault("heavier_stage", stage=2, stage_factor=1.13, data_us=loading)
    job, mended = PlantedJob(shape, both, 1), PlantedJob(shape, replace(both, data_us=None), 1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(0, "data_loading")]
    assert found.gain == pytest.approx(1 - mended.length_ns / job.length_ns, abs=GAIN_OFF)


@pytest.mark.parametrize("kind", ["host", "stage_imbalance"])
def test_of_a_stage_without_peers_it_is_told_what_takes_longer(kind: str) -> None:
    """A pipeline of one rank per stage: work can only go to another stage, a slow host can vanish."""
    shape = JobShape(dp=1, pp=4, microbatches=6, layers=2, launch_share=0.7, host_noise=0.15)
    host = np.ones((shape.ranks, shape.iterations))
    host[1] = 2.5
    heavy = PlantedFault("heavier_stage", 1, stage=1, stage_factor=2.0)
    job = PlantedJob(shape, PlantedFault("slow_host", 1, host=host) if kind == "host" else heavy, 1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)))
    assert found is not None
    assert (found.verdict, [(one.rank, one.cause) for one in found.ranks]) == ("heavy_stage", [(1, kind)])
    if kind == "host":
        assert found.gain == pytest.approx(
            1 - PlantedJob(shape, PlantedFault(), 1).length_ns / job.length_ns, abs=GAIN_OFF
        )


@pytest.mark.parametrize("pause_is_seen", [False, True])
def test_pauses_that_one_stage_has_more_often_by_chance_are_no_heavy_stage(pause_is_seen: bool) -> None:
    """In six of ten iterations, where the others have two: a slow host would be slow in all of them."""
    shape = JobShape(dp=1, pp=8, microbatches=12, layers=2, iterations=10, asks_loss=True)
    pauses = np.zeros((shape.ranks, shape.iterations))
    for rank in range(1, shape.ranks):
        pauses[rank, [rank % 9 + 1, (3 * rank) % 8 + 2]] = 30_000
    pauses[0, [2, 3, 4, 5, 7, 8]] = 35_000
    job = PlantedJob(shape, PlantedFault("pauses_everywhere", pause_us=pauses, pause_is_seen=pause_is_seen), 1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)))
    assert found is not None
    assert found.verdict != "heavy_stage"
