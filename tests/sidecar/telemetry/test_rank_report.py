"""One trainer's telemetry: rates and energy between reports."""

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_sidecar.processes.views import StepView
from fleetprof_sidecar.telemetry.rank_report import DEVICE_STALE_NS, DeviceState, RankReport
from harness.sidecar.process_views import steps, view
from hypothesis import given
from hypothesis import strategies as st

S = 10**9


@pytest.mark.parametrize(
    ("reports", "per_second"),
    [
        ([(steps(10, 0), 0), (steps(20, 5), 5)], [2.0, 2.0]),
        ([(steps(10, 0, per_iteration=2), 0), (steps(30, 5, per_iteration=2), 5)], [2.0, 2.0]),
        ([(steps(10, 0), 0), (steps(20, 5), 5), (steps(20, 5), 17)], [2.0, 2.0, 0.1]),
        ([(steps(10, 0), 0), (steps(10, 0), 2), (steps(12, 4), 5)], [2.0, 2.0, 0.5]),
        ([(steps(10, 0), 0), (steps(2, 5), 5)], [2.0, 2.0]),
        ([(steps(1, 0, iteration_ns=0), 0), (steps(3, 4, iteration_ns=0), 5)], [None, 0.5]),
    ],
    ids=[
        "steady",
        "two optimizers",
        "stalled for 12 s",
        "between two words of the agent",
        "counted anew",
        "just begun",
    ],
)
def test_iterations_per_second(reports: list[tuple[StepView, float]], per_second: list[float | None]) -> None:
    report = RankReport()
    made_reports = [report.make(view(step), int(at_s * S)) for step, at_s in reports]
    rates = [
        t.iteration_rate_microhertz / 1e6 if t.HasField("iteration_rate_microhertz") else None for t in made_reports
    ]
    assert rates == pytest.approx(per_second)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20), st.integers(0, 3 * 10**9))
def test_a_rate_is_never_negative_and_falls_while_nothing_ends(events: list[tuple[int, int]], silence: int) -> None:
    report, at, last = RankReport(), 0, steps(0, 0)
    for gain, span in events:
        at += span
        last = StepView(last.step + gain % 1000, at, S // 2, 1)
        assert report.make(view(last), at).iteration_rate_microhertz >= 0
    first, second = (report.make(view(last), at + 3 * S + part * silence) for part in (1, 2))
    assert second.iteration_rate_microhertz <= first.iteration_rate_microhertz


def test_energy_of_an_iteration_is_between_two_samples_and_told_once() -> None:
    report, trains = RankReport(), view(steps(100, 10, per_iteration=2))
    report.note_device(DeviceState(1 * S, 100, {"energy_millijoules": 1000, "power_milliwatts": 5}))
    first = report.make(trains, 2 * S)
    assert (first.gpu_power_milliwatts, first.HasField("gpu_energy_millijoules")) == (5, False)
    report.note_device(DeviceState(6 * S, 120, {"energy_millijoules": 4000}))
    second = report.make(trains, 7 * S)
    assert (second.gpu_energy_millijoules, second.gpu_iteration_energy_millijoules) == (3000, 300)
    assert not report.make(trains, 8 * S).HasField("gpu_energy_millijoules")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"energy_millijoules": 9}, {"energy_millijoules": 3}),
        ({}, {"energy_millijoules": 3}),
        ({"energy_millijoules": 9}, {}),
    ],
    ids=["the driver began anew", "not known before", "not known now"],
)
def test_a_counter_without_a_past_is_no_news(before: dict[str, int], after: dict[str, int]) -> None:
    report = RankReport()
    report.note_device(DeviceState(1 * S, 1, before))
    report.make(view(), 2 * S)
    report.note_device(DeviceState(6 * S, 9, after))
    telemetry = report.make(view(steps(9, 6)), 7 * S)
    assert not telemetry.HasField("gpu_energy_millijoules")
    assert not telemetry.HasField("gpu_iteration_energy_millijoules")


def test_what_nobody_told_is_absent_and_an_old_sample_is_unknown() -> None:
    report = RankReport()
    assert report.make(view(), S) == pb.RankTelemetry(process_id="p")
    report.note_device(DeviceState(S, 1, {"utilization_permille": 0}))
    assert report.make(view(), S + DEVICE_STALE_NS).HasField("gpu_busy_permille")
    assert not report.make(view(), S + DEVICE_STALE_NS + 1).HasField("gpu_busy_permille")


def test_what_the_nodes_exporter_says_fills_what_the_agent_cannot_read() -> None:
    report, trains = RankReport(), view(steps(100, 10))
    report.note_device(DeviceState(10 * S, 100, {"utilization_permille": 900, "energy_millijoules": 5000}))
    report.note_exported(9 * S, {"utilization_permille": 100, "sm_active_permille": 600, "energy_millijoules": 4000})
    telemetry = report.make(trains, 11 * S)
    assert (telemetry.gpu_busy_permille, telemetry.gpu_sm_active_permille) == (900, 600)
    assert report.has("sm_active_permille")
    assert not report.make(trains, 9 * S + DEVICE_STALE_NS + 1).HasField("gpu_sm_active_permille")


def test_without_an_agent_all_is_the_exporters_but_the_energy_of_iterations() -> None:
    report, trains = RankReport(), view(steps(100, 10))
    report.note_exported(10 * S, {"utilization_permille": 100, "energy_millijoules": 4000})
    assert report.make(trains, 11 * S).gpu_busy_permille == 100
    report.note_exported(25 * S, {"utilization_permille": 200, "energy_millijoules": 9000})
    telemetry = report.make(trains, 26 * S)
    assert (telemetry.gpu_busy_permille, telemetry.gpu_energy_millijoules) == (200, 5000)
    assert not telemetry.HasField("gpu_iteration_energy_millijoules")
    assert not report.make(trains, 25 * S + DEVICE_STALE_NS + 1).HasField("gpu_busy_permille")
