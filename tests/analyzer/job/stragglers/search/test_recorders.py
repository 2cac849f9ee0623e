"""The same job under every recorder: the same rank, cause and worth, or what is missing to tell it."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.trace.trace import COLUMNS, Rows
from fleetprof_api.report.stragglers import Stragglers
from harness.traces import foreign_layouts
from harness.traces.recorders import RECORDERS, UNMARKED, without_ranks
from harness.traces.simulated.cases import CAUSES, SimulatedCase, draw_simulated
from harness.traces.straggler_sections import stragglers_of_traces

GAIN_OFF = 0.03
FAULTS = [("ddp", "slow_gpu", 500_000), ("fsdp", "data_loader", 500_000), ("ddp", "throttling", 500_000)]
# Hosts of small kernels hardly wait, and not where it would be seen.
UNSEEN = ("waits in no row", "launches alone")


def recorded(case: SimulatedCase, recorder: str) -> Stragglers:
    return stragglers_of_traces(RECORDERS[recorder](case.job.traces(), np.random.default_rng(case.seed)))


@pytest.mark.parametrize(("layout", "kind", "seed"), FAULTS)
@pytest.mark.parametrize("recorder", RECORDERS)
def test_what_a_recorder_writes_changes_no_verdict(layout: str, kind: str, seed: int, recorder: str) -> None:
    case = draw_simulated(layout, kind, seed)
    found = recorded(case, recorder)
    unmarked = kind == "data_loader" and recorder in UNMARKED
    cause = "host" if unmarked else CAUSES[kind]
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.job.fault.rank, cause)]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)


# In the last one some hosts wait where it may be their own time: a faster link would not shorten that.
OF_GROUPS = [("tp", "slow_link", 740_001), ("pipeline", "heavy_stage", 740_000), ("tp", "slow_link", 931_000)]


@pytest.mark.parametrize(("layout", "kind", "seed"), OF_GROUPS)
@pytest.mark.parametrize(
    "recorder", ["waits not recorded", "waits in no row", "launches alone", "no calls", "a tenth of the flows lost"]
)
def test_a_slow_link_or_a_heavy_stage_hangs_on_no_wait_either(layout: str, kind: str, seed: int, recorder: str) -> None:
    case = draw_simulated(layout, kind, seed)
    found = recorded(case, recorder)
    fault = case.job.fault
    if kind == "heavy_stage":
        assert [(one.rank, one.cause) for one in found.ranks] == [(rank, CAUSES[kind]) for rank in fault.ranks]
    else:
        assert fault.rank in found.slow_links[0].ranks
    is_rough = found.approximate and found.gain > case.gain / 2
    assert is_rough or found.gain == pytest.approx(case.gain, abs=GAIN_OFF)


def test_without_launches_a_heavy_stage_that_a_replay_does_not_tell_is_below_the_stated_floor() -> None:
    case = draw_simulated("pipeline", "heavy_stage", 947_000)
    found = recorded(case, "no calls")
    assert found.verdict == "nobody"
    assert found.smallest_gain is not None
    assert found.smallest_gain > case.gain


@pytest.mark.parametrize("recorder", ["AMD", "a rank missing"])
def test_a_slow_link_shows_beside_few_sisters_and_hosts_that_wait_for_an_earlier_layer(recorder: str) -> None:
    """Ranks that meet on it wait longer, and must not seem busy; without rank 10 it has two sisters."""
    case = draw_simulated("hsdp", "slow_link", 823_000)
    if recorder in RECORDERS:
        found = recorded(case, recorder)
    else:
        found = stragglers_of_traces(without_ranks(case.job.traces(), [10]))
    assert found.slow_links[0].ranks == [0, 1, 2, 3]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)
    assert found.approximate == (recorder not in RECORDERS)  # nothing says what a rank does that left no trace


def test_slow_transfers_that_a_rough_replay_denies_leave_the_verdict_open() -> None:
    found = recorded(draw_simulated("pipeline", "slow_group", 823_000), "no calls")
    assert (found.verdict, found.ranks) == ("undecided", [])
    assert found.reason.startswith("the window replayed from the traces is 3.7 % longer than it was")


@pytest.mark.parametrize("recorder", UNSEEN)
def test_where_own_time_and_waiting_cannot_be_told_apart_it_is_said(recorder: str) -> None:
    case = draw_simulated("launch", "slow_host", 510_000)
    found = recorded(case, recorder)
    if found.verdict == "undecided":
        assert found.reason.startswith(f"the potential saving of rank {case.job.fault.rank} ")
        assert "does not say whether its host worked or waited" in found.reason
        assert ("ProfilerActivity.CPU" in found.reason) == (recorder == "launches alone")
    else:
        assert [one.rank for one in found.ranks] == [case.job.fault.rank]


@pytest.mark.parametrize("layout", ["ddp", "launch"])
@pytest.mark.parametrize("recorder", RECORDERS)
def test_nobody_is_named_in_a_healthy_job(layout: str, recorder: str) -> None:
    found = recorded(draw_simulated(layout, "none", 500_000), recorder)
    assert (found.ranks, found.slow_links) == ([], [])


# Each has ranks whose hosts have no lead by chance, or pause while their devices are busy.
LEADERS = [
    ("launch", 530_000, "no calls"), ("launch_hsdp", 530_000, "no host"), ("hybrid sharding", 610_000, "no calls"),
    ("hybrid sharding", 610_000, "no host"), ("experts", 530_000, "no marks"),
    ("gradients behind tensors", 135_025, "as it is"),  # its loading shows in the gaps of a host without a lead
]  # fmt: skip


@pytest.mark.parametrize(("layout", "seed", "recorder"), LEADERS)
def test_a_lead_that_passes_from_host_to_host_is_no_fault(layout: str, seed: int, recorder: str) -> None:
    if layout in foreign_layouts.LAYOUTS:
        _, traces, _ = foreign_layouts.draw_foreign(layout, "none", seed)
    else:
        traces = draw_simulated(layout, "none", seed).job.traces()
    found = stragglers_of_traces(RECORDERS[recorder](traces, np.random.default_rng(seed)))
    assert (found.ranks, found.verdict != "straggler") == ([], True)


def test_a_device_is_late_though_its_work_stands_on_the_wrong_side_of_its_receives() -> None:
    case, traces, _ = foreign_layouts.draw_foreign("receives beside compute", "slow_gpu", 531_000)
    found = stragglers_of_traces(RECORDERS["no calls"](traces, np.random.default_rng(531_000)))
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.culprits[0], "slow_gpu")]
    assert found.approximate
    assert 0 < found.gain < case.gain


def test_iterations_are_guessed_for_the_job_and_not_for_each_rank() -> None:
    """On two of four ranks chance makes two iterations of other shapes look like one."""
    case = draw_simulated("lengths_fsdp", "data_loader", 531_000)
    found = recorded(case, "no marks")
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.job.fault.rank, "data_loading")]


def test_more_work_is_no_slow_device_where_nothing_marks_iterations() -> None:
    case = draw_simulated("lengths_fsdp", "unequal_work", 931_000)
    found = recorded(case, "no marks")
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.job.fault.rank, "unequal_work")]


def test_waits_that_some_hosts_hide_are_enough_to_ask_for_operators() -> None:
    case = draw_simulated("launch_hsdp", "slow_host", 531_000)
    found = recorded(case, "launches alone")
    assert found.verdict == "undecided"
    assert found.reason.startswith(
        f"the potential saving of rank {case.job.fault.rank} may be 43.2 % of each iteration"
    )
    assert "ProfilerActivity.CPU" in found.reason


def test_what_costs_less_than_the_replay_is_off_by_is_not_told() -> None:
    """A tenth of the calls are in no row, and their numbers say nothing of the order in which they were made."""
    case = draw_simulated("fsdp", "data_loader", 500_000)
    source, traces = np.random.default_rng(case.seed), []
    for trace in case.job.traces():
        number = trace.rows.correlation
        other = np.where(number < 0, -1, source.permutation(int(number.max()) + 1)[number])
        rows = {one: getattr(trace.rows, one) for one in COLUMNS} | {"correlation": other}
        traces.append(replace(trace, rows=Rows(**rows)))
    lost = RECORDERS["a tenth of the calls missing"](traces, np.random.default_rng(case.seed))
    found = stragglers_of_traces(lost)
    assert (found.verdict, found.ranks) == ("undecided", [])
    assert found.fidelity == pytest.approx(1.236, abs=0.001)
    assert found.reason.startswith("the window replayed from the traces is 23.6 % longer than it was")
