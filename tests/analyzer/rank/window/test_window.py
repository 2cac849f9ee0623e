"""The window is what was recorded: what was not is no idle time, and is said with its reason."""


import pytest
from fleetprof_api.report.report import Report, TimeBreakdown
from harness.traces.planted.windows import BEGIN, STEP, Events, kernel, launch, report_of, row, steps

MS = 1_000_000
END = BEGIN + 5 * STEP


def times(report: Report) -> dict[str, float]:
    """ms of the report's total, the parts that are not zero."""
    (total,) = report.totals
    parts = [name for name in TimeBreakdown.__struct_fields__ if name != "overlapped_communication"]
    return {name: part / MS for name in parts if (part := getattr(total.time_ns, name))}


def kinds(report: Report) -> list[str]:
    return [problem.kind for problem in report.problems]


# Without the first two milliseconds, before any work.
WHOLE = {"span": 98.0, "compute": 60.0, "exposed_communication": 10.0, "idle": 28.0}


def test_a_recording_without_a_fault() -> None:
    report = report_of(steps(range(5)))
    assert times(report) == WHOLE
    assert kinds(report) == []


@pytest.mark.parametrize("profiler", [True, False])
@pytest.mark.parametrize(
    ("strays", "count"),
    [
        ([kernel("volta_sgemm", 0, 0, 10**6 + number) for number in range(1_000)], 1_000),
        ([kernel("volta_sgemm", BEGIN - 2_000_000, 3, 10**6)], 1),
        ([row("aten::empty", "cpu_op", BEGIN - 2_000_000, 10)], 1),
        ([launch(BEGIN - 300_000, 1_000_001), kernel("fill", BEGIN - 299_900, 2, 1_000_001)], 2),
        ([kernel("volta_sgemm", END + 700_000, 3, 10**6), kernel("volta_sgemm", END + 90_000_000, 3, 10**6 + 1)], 2),
        ([kernel("early", 0, 0, 10**6), kernel("late", END + 5_000_000, 5, 10**6 + 1)], 2),
    ],
)
def test_rows_far_outside_of_all_iterations_are_left_out(strays: Events, count: int, profiler: bool) -> None:
    report = report_of([*strays, *steps(range(5), profiler=profiler)])
    assert times(report) == WHOLE
    assert [(problem.kind, problem.count) for problem in report.problems] == [("outside_recording", count)]


@pytest.mark.parametrize(
    "events",
    [
        # A pause in a recording without the profiler's own ranges: the host does nothing that a row would show.
        [*steps([0, 1], profiler=False), *steps([2, 3], begin=BEGIN + 400_000, profiler=False)],
        # What comes before all iterations is more than a few rows.
        [row("aten::normal_", "cpu_op", BEGIN - 40_000, 9_000), *steps(range(3))],
        [row("aten::mm", "cpu_op", 0, 10), row("aten::mm", "cpu_op", 3_000_000, 10)],
    ],
)
def test_what_belongs_to_the_recording_is_kept(events: Events) -> None:
    assert kinds(report_of(events)) == []
