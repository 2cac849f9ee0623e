"""The window is what was recorded: what was not is no idle time, and is said with its reason."""

import pytest
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.report.report import Report, TimeBreakdown
from harness.reports.page_text import page_text
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
        ([kernel("volta_sgemm", number, 3_000, 10**6 + number, number) for number in range(30)], 30),
        ([kernel("volta_sgemm", BEGIN - 2_000_000, 30_000, 10**6)], 1),
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
    ],
)
def test_what_belongs_to_the_recording_is_kept(events: Events) -> None:
    assert kinds(report_of(events)) == []


def lost(report: Report) -> dict[str, float]:
    """ms that were not recorded, by reason."""
    (total,) = report.totals
    assert total.unrecorded == report.ranks[0].unrecorded
    return {one.reason: one.time_ns / MS for one in total.unrecorded}


def adds_up(report: Report) -> bool:
    every = [report.ranks[0].time_ns, *(one.time_ns for one in report.ranks[0].iterations if one.time_ns is not None)]
    return all(
        one.span == one.compute + one.exposed_communication + one.exposed_memory + one.idle + one.unrecorded
        for one in every
    )


# ---------------------------------------------------------------- the recorder paused


@pytest.mark.parametrize("pause_ms", [60, 3_000, 400_000])
def test_what_lies_between_two_cycles_of_the_profiler_is_no_idle_time(pause_ms: int) -> None:
    first, second = steps([10, 11, 12]), steps([20, 21, 22], begin=BEGIN + 1_000 * pause_ms - 7 * STEP)
    report = report_of([*first, *second])
    # Twice three steps: all but the first two milliseconds of the first one.
    assert times(report) == {"span": 118.0, "compute": 72.0, "exposed_communication": 12.0, "idle": 34.0}
    assert [one.index for one in report.ranks[0].iterations] == [10, 11, 12, 20, 21, 22]
    assert lost(report) == {"paused": pause_ms}
    assert kinds(report) == ["recording_paused"]
    assert adds_up(report)
    words = "nothing of host and devices was recorded, as between two cycles of the profiler"
    assert words in " ".join(render_text(report).split())
    assert words in page_text(report)


@pytest.mark.parametrize(
    ("events", "paused"),
    [
        # The profiler's ranges with numbers that go on: it was stopped and started by hand.
        ([*steps([0, 1, 2]), *steps([3, 4, 5], begin=BEGIN + 2_000_000)], 2_000),
        # Without the ranges: nothing at all for far longer than an iteration.
        ([*steps([0, 1, 2], profiler=False), *steps([3, 4, 5], begin=BEGIN + 2_000_000, profiler=False)], 2_000),
        # A host row shows that the recorder was there.
        ([*steps([0, 1, 2], profiler=False), row("aten::save", "cpu_op", BEGIN + 60_000, 2_000_000),
          *steps([3, 4, 5], begin=BEGIN + 2_000_000, profiler=False)], 0),
        # PyTorch itself takes a little from one range to the next.
        ([*steps([0, 1, 2]), *steps([3, 4, 5], begin=BEGIN + 400)], 0),
    ],
)  # fmt: skip
def test_a_pause_is_told_from_a_host_that_does_nothing(events: Events, paused: float) -> None:
    assert lost(report_of(events)) == ({"paused": paused} if paused else {})


@pytest.mark.parametrize("at_ms", [-400, 300])
def test_rows_before_and_behind_the_profilers_ranges_are_not_idle_in_between(at_ms: int) -> None:
    """Too much to be left out, and the profiler's ranges say when it recorded."""
    begin = BEGIN + (1_000 * at_ms if at_ms < 0 else 3 * STEP + 1_000 * at_ms)
    report = report_of([row("aten::mm", "cpu_op", begin, 20_000), kernel("mm", begin, 20_000, 1), *steps([0, 1, 2])])
    assert times(report)["idle"] < 25
    assert kinds(report) == ["recording_paused"]


def test_a_second_recording_with_the_same_steps_is_said() -> None:
    report = report_of([*steps([0, 1, 2]), *steps([0, 1, 2], begin=BEGIN + 2_000_000)])
    assert lost(report) == {"paused": 2_000 - 60}
    assert [one.index for one in report.ranks[0].iterations] == [0, 1, 2]
    assert kinds(report) == ["second_recording", "recording_paused"]


def test_the_recorders_own_window_shows_that_it_went_on() -> None:
    window = [
        {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "ts": BEGIN - 10, "pid": "Traces", "tid": "Trace"},
        {"ph": "i", "name": "Record Window End", "ts": BEGIN + 3_000_000, "pid": "", "tid": ""},
    ]
    events = [*steps([0, 1, 2], profiler=False), *steps([3, 4, 5], begin=BEGIN + 2_000_000, profiler=False)]
    assert lost(report_of([*events, *window])) == {}


def test_the_host_of_a_rank_without_a_device_is_not_idle_in_a_pause() -> None:
    events = [*steps([0, 1, 2]), *steps([7, 8, 9], begin=BEGIN + 3_000_000)]
    report = report_of([event for event in events if event["cat"] in ("cpu_op", "user_annotation")])
    (rank,) = report.ranks
    # From the first operator at 1.9 ms to the end of the last at 19 ms.
    assert (rank.kind, rank.time_ns.span) == ("cpu", 2 * 60 * MS - 2.9 * MS)
    assert lost(report) == {"paused": 3_000 + 4 * 20 + 20 - 20}


def test_a_rank_without_a_device_that_lacked_a_core_for_400_ms_has_recorded_all_the_same() -> None:
    events = [event for event in steps(range(3), profiler=False) if event["cat"] in ("cpu_op", "user_annotation")]
    assert kinds(report_of([*events, row("aten::empty", "cpu_op", BEGIN - 410_000, 10)])) == []
    assert kinds(report_of([*events, row("aten::empty", "cpu_op", BEGIN - 2_000_000, 10)])) == ["outside_recording"]


@pytest.mark.parametrize("marks", ["profiler", "optimizer", "none"])
def test_no_iteration_reaches_over_a_pause(marks: str) -> None:
    profiler = marks == "profiler"
    events = [*steps([0, 1, 2], profiler=profiler), *steps([3, 4, 5], begin=BEGIN + 2_000_000, profiler=profiler)]
    if marks == "none":
        events = without(events, "Optimizer")
    (rank,) = report_of(events).ranks
    assert rank.stages is not None
    assert sum(stage.time_ns for stage in rank.stages.stages) == pytest.approx(6 * 20 * MS, abs=4 * MS)
    assert max([one.duration_ns / MS for one in rank.iterations], default=20) == pytest.approx(20, abs=0.1)


# ---------------------------------------------------------------- work that is not in the trace


def without(events: Events, *names: str) -> Events:
    return [event for event in events if not event["name"].startswith(names)]


BACKWARD = ("gemm_backward", "nccl")


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch", "cuLaunchKernel", "urEnqueueKernelLaunch"])
def test_launches_whose_work_is_missing_are_no_idle_time(name: str) -> None:
    events = without(steps(range(5)), "gemm", "nccl")
    events = [event | {"name": name} if event["name"] == "cudaLaunchKernel" else event for event in events]
    report = report_of(events)
    # Of each step but the first: idle until 1.95 ms, then lost until the optimizer's kernel at 19 ms.
    assert times(report) == {"span": 81.0, "compute": 5.0, "idle": 7.8, "unrecorded": 68.2}
    assert lost(report) == {"work_missing": 68.2}
    assert [(one.kind, one.count) for one in report.problems] == [("work_missing", 15)]
    assert "15 of 20 launches have no work in the trace" in report.problems[0].message
    assert adds_up(report)
    text = render_text(report)
    assert "84.2 % of the GPU's time was not recorded: work that was launched is not in the trace" in text.replace(
        "\n", " "
    )
    assert "not recorded" in page_text(report)


@pytest.mark.parametrize(("name", "missing"), [("cudaGraphLaunch", 1), ("cudaLaunchKernel", 0)])
def test_a_row_may_be_lost_now_and_then_but_not_all_of_a_graph(name: str, missing: int) -> None:
    events = [
        event for event in steps(range(20)) if event["name"] != "gemm_backward" or event["args"]["correlation"] != 1_101
    ]
    events = [
        event | {"name": name} if event["cat"] == "cuda_runtime" and event["args"]["correlation"] == 1_101 else event
        for event in events
    ]
    report = report_of(events)
    assert [problem.count for problem in report.problems] == [1] * missing
    # From the end of forward's kernel to the all-reduce, which was launched behind.
    assert lost(report) == ({"work_missing": 7.0} if missing else {})


def test_a_recording_of_the_device_alone_says_what_is_not_known() -> None:
    report = report_of([event for event in steps(range(5)) if event["cat"] not in ("cpu_op", "cuda_runtime")])
    assert kinds(report) == ["host_not_recorded"]
    assert "the causes of idle time are not known" in report.problems[0].message
    assert lost(report) == {}
    assert adds_up(report)


def test_a_wait_for_the_device_shows_that_lost_work_was_over() -> None:
    events = without(steps(range(2)), "gemm", "nccl")
    events.append(row("cudaDeviceSynchronize", "cuda_runtime", BEGIN + STEP + 3_000, 12_000, correlation=9_999))
    # Of the second step: lost from 1.95 to 15 ms, and idle again until the optimizer's kernel.
    assert times(report_of(events)) == {"span": 21.0, "compute": 2.0, "idle": 1.95 + 4.0, "unrecorded": 13.05}


def test_what_is_launched_while_a_stream_is_captured_does_not_run() -> None:
    capture = [
        row("cudaStreamBeginCapture", "cuda_runtime", BEGIN + 15_100, 10),
        launch(BEGIN + 15_200, 9_001),
        launch(BEGIN + 15_300, 9_002),
        row("cudaStreamEndCapture", "cuda_runtime", BEGIN + 15_400, 10),
    ]
    report = report_of([*steps(range(5)), *capture])
    assert times(report) == WHOLE
    assert kinds(report) == []


@pytest.mark.parametrize("calls", [True, False])
def test_an_iteration_without_any_row_of_the_device_is_not_idle(calls: bool) -> None:
    events = [event for event in steps(range(5)) if calls or event["cat"] != "cuda_runtime"]
    middle = BEGIN + 2 * STEP
    events = [
        event for event in events
        if event["cat"] not in ("kernel", "cuda_runtime") or not middle <= event["ts"] < middle + STEP
    ]  # fmt: skip
    report = report_of(events)
    assert times(report) == {
        "span": 98.0, "compute": 48.0, "exposed_communication": 8.0, "idle": 22.0, "unrecorded": 20.0
    }  # fmt: skip
    assert lost(report) == {"no_device_rows": 20.0}
    assert kinds(report) == ["work_missing"]
    assert adds_up(report)


def test_work_of_the_iteration_before_runs_into_one_without_rows() -> None:
    """Without the profiler's ranges an iteration ends with the optimizer's step, and its last kernel runs on."""
    middle = BEGIN + 2 * STEP
    events = [
        event for event in steps(range(5), profiler=False)
        if event["cat"] not in ("kernel", "cuda_runtime") or not middle <= event["ts"] < middle + STEP
    ]  # fmt: skip
    assert lost(report_of(events)) == {"no_device_rows": pytest.approx(20, abs=0.1)}


def test_rows_before_a_recording_without_marks_are_left_out() -> None:
    events = without(steps(range(5), profiler=False), "Optimizer")
    report = report_of([kernel("volta_sgemm", BEGIN - 300_000, 3, 10**6), *events])
    assert times(report) == WHOLE
    assert kinds(report) == ["outside_recording"]


def test_an_iteration_in_which_the_host_launches_nothing_is_idle() -> None:
    middle = BEGIN + 2 * STEP
    events = [
        event for event in steps(range(5))
        if event["name"].startswith("ProfilerStep") or not middle <= event["ts"] < middle + STEP
    ]  # fmt: skip
    assert lost(report_of(events)) == {}


def test_work_that_does_not_say_who_launched_it_is_not_missing() -> None:
    """Kernels of a replayed graph, as some drivers record them."""
    events = [event for event in steps(range(5)) if event["name"] != "aten::linear"]
    for event in events:
        if event["name"] in ("gemm_forward", "gemm_backward"):
            del event["args"]["correlation"]
    report = report_of(events)
    assert times(report) == WHOLE
    assert kinds(report) == []


# ---------------------------------------------------------------- clocks that do not fit


@pytest.mark.parametrize("early_us", [600, 6_000, 900_000])
def test_no_cause_is_named_where_work_begins_before_its_launch(early_us: int) -> None:
    events = [
        event | {"ts": event["ts"] - early_us} if event["cat"] == "kernel" else event for event in steps(range(5))
    ]
    report = report_of(events)
    assert times(report) == WHOLE
    (total,) = report.totals
    assert total.idle_ns is not None
    assert total.idle_ns.unknown == total.time_ns.idle
    assert report.ranks[0].launches is None
    assert [one.kind for one in report.findings] == ["exposed_communication"]
    assert kinds(report) == ["clocks_differ"]
    assert "because" not in render_text(report)


@pytest.mark.parametrize("late_us", [500, 6_000])
@pytest.mark.parametrize("wait", ["cudaDeviceSynchronize", "hipDeviceSynchronize", "cudaStreamSynchronize"])
def test_no_cause_is_named_where_the_host_waits_no_longer_than_its_work_runs(wait: str, late_us: int) -> None:
    events = steps(range(5))
    for number in range(5):
        at = BEGIN + STEP * number
        copy = kernel("Memcpy DtoH (Device -> Pinned)", at + 15_000, 10, 5_000 + number)
        events += [
            launch(at + 3_000, 5_000 + number, name="cudaMemcpyAsync"),
            row(wait, "cuda_runtime", at + 3_030, 12_000, correlation=6_000 + number),
            copy | {"cat": "gpu_memcpy"},
        ]
    assert kinds(report_of(events)) == []
    moved = [event | {"ts": event["ts"] + late_us} if event["tid"] in (7, 20) else event for event in events]
    report = report_of(moved)
    assert [(problem.kind, problem.count) for problem in report.problems] == [("clocks_differ", 5)]
    assert times(report)["compute"] == WHOLE["compute"]
    assert report.totals[0].idle_ns is not None
    assert report.totals[0].idle_ns.unknown == report.totals[0].time_ns.idle
