"""Iterations: where they begin and end, and which number they carry."""

import io
from typing import Any

import pytest
from fleetprof_analyzer.rank.iterations import Iterations, RecordingTerms, find_iterations
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.samples import RankSamples, StepColumns
from harness.traces.planted.traces import START_NS, event, plant

MS = 1_000_000
STEP = "Optimizer.step#AdamW.step"


def document(events: list[dict[str, Any]], start_ns: int | None = START_NS) -> dict[str, Any]:
    planted = plant(0, iterations=1, segments=1, start_ns=START_NS).document
    markers = [e for e in planted["traceEvents"] if e["name"].startswith("Iteration Start")] if start_ns else []
    return {**planted, "traceEvents": [*markers, *events]}


def mark(end_ms: int, name: str = STEP, tid: int = 77) -> dict[str, Any]:
    """An optimizer step of 1 ms that ends `end_ms` after the start."""
    return event(name, "user_annotation", START_NS + (end_ms - 1) * MS, MS, 77, tid)


def samples(ends_ms: dict[int, float], **fields: Any) -> RankSamples:
    """The agent's view: its hook runs 20 µs before the annotation ends."""
    steps = StepColumns(step=list(ends_ms), end_unix_ns=[START_NS + round(ms * MS) - 20_000 for ms in ends_ms.values()])
    return RankSamples(rank=0, agent=True, steps=steps, **fields)


def find(
    events: list[dict[str, Any]],
    samples_of_rank: RankSamples | None = None,
    terms: RecordingTerms | None = None,
    marker: bool = True,
) -> tuple[Iterations, dict[str, int]]:
    problems = Problems()
    planted = plant(0, iterations=1)
    planted.document = document(events, START_NS if marker else None)
    trace = read_trace(io.BytesIO(planted.text().encode()), "t", problems)
    found = find_iterations(trace, samples_of_rank, terms or RecordingTerms(), problems)
    return found, {str(p.kind): p.count for p in problems.entries("t", None)}


def table(found: Iterations) -> list[tuple[int, int, int]]:
    """(index, start in ms, duration in ms)."""
    return [(i.index, (i.start_ns - START_NS) // MS, i.duration_ns // MS) for i in found.iterations]


def test_optimizer_steps_end_iterations_and_the_recording_begins_the_first() -> None:
    found, problems = find([mark(10), mark(22), mark(30)])
    assert table(found) == [(0, 0, 10), (1, 10, 12), (2, 22, 8)]
    assert (found.marks, found.index_from, found.first_step) == ("optimizer_step", "position", None)
    assert [i.complete for i in found.iterations] == [None, True, True]
    assert problems == {}


def test_without_a_marker_the_first_row_of_the_thread_begins_the_first() -> None:
    found, _ = find([event("aten::mm", "cpu_op", START_NS + 3 * MS, 5, 77, 77), mark(10)], marker=False)
    assert table(found) == [(0, 3, 7)]


def test_the_agent_gives_the_numbers() -> None:
    steps = samples({410: -11, 411: 0, 412: 10, 413: 22, 414: 30, 415: 44})
    found, problems = find([mark(10), mark(22), mark(30)], steps, RecordingTerms("step", 412))
    assert table(found) == [(412, 0, 10), (413, 10, 12), (414, 22, 8)]
    assert (found.index_from, found.first_step) == ("agent", 412)
    assert [i.complete for i in found.iterations] == [True, True, True]
    assert problems == {}


def test_two_optimizers_make_one_iteration_of_two_steps() -> None:
    steps = samples({820: 0, 821: 6, 822: 10, 823: 17, 824: 22}, steps_per_iteration=2)
    found, _ = find([mark(6, "Optimizer.step#A"), mark(10, "Optimizer.step#B"), mark(17, "Optimizer.step#A"),
                     mark(22, "Optimizer.step#B")], steps, RecordingTerms("step", 821))  # fmt: skip
    assert table(found) == [(411, 0, 10), (412, 10, 12)]
    assert [i.step for i in found.iterations] == [821, 823]


def test_two_optimizers_are_seen_without_the_agent_too() -> None:
    names = ["Optimizer.step#A", "Optimizer.step#B"] * 2
    found, _ = find([mark(end, name) for end, name in zip([6, 10, 17, 22], names, strict=True)])
    assert (table(found), found.steps_per_iteration) == ([(0, 0, 10), (1, 10, 12)], 2)


def test_an_optimizer_that_steps_others_ends_one_iteration() -> None:
    inner = [event(f"Optimizer.step#{name}.step", "user_annotation", START_NS + at * MS, MS, 77, 77)
             for end in (10, 20, 30) for name, at in (("Adagrad", end - 4), ("SGD", end - 2))]  # fmt: skip
    outer = [event("Optimizer.step#Combined.step", "user_annotation", START_NS + (end - 5) * MS, 5 * MS, 77, 77)
             for end in (10, 20, 30)]  # fmt: skip
    assert table(find([*inner, *outer])[0]) == [(0, 0, 10), (1, 10, 10), (2, 20, 10)]


def test_steps_of_another_iteration_at_the_head_are_not_counted() -> None:
    steps = samples({821: -2, 822: 6, 823: 10, 824: 17}, steps_per_iteration=2)
    found, _ = find([mark(6), mark(10), mark(17)], steps)
    assert table(found) == [(412, 6, 11)]


def test_an_iteration_that_the_recording_begins_in_the_middle_of_is_left_out() -> None:
    steps = samples({411: -7, 412: 10, 413: 22})
    found, _ = find([mark(10), mark(22)], steps, RecordingTerms("time"))
    assert table(found) == [(413, 10, 12)]
    assert found.first_step == 413


def test_a_recording_that_begins_at_a_time_loses_its_first_iteration_without_the_agent() -> None:
    found, _ = find([mark(10), mark(22)], None, RecordingTerms("time"))
    assert table(found) == [(0, 10, 12)]


def test_one_iteration_is_numbered_although_kineto_stops_inside_its_step() -> None:
    """Seen in real captures: the last mark ends up to 15 ms before the agent's hook runs."""
    steps = samples({410: -11, 411: 0, 412: 25, 413: 33})
    found, problems = find([mark(10)], steps, RecordingTerms("step", 412))
    assert (table(found), found.first_step, problems) == ([(412, 0, 10)], 412, {})


def test_a_gap_in_the_step_times_numbers_nothing() -> None:
    found, problems = find([mark(10)], samples({411: 0, 413: 25}), RecordingTerms("step", 412))
    assert (found.index_from, problems) == ("position", {"steps_do_not_match": 1})


def test_step_times_of_another_moment_are_not_believed() -> None:
    found, problems = find([mark(10), mark(22)], samples({7: 500, 8: 510}))
    assert (found.index_from, table(found)) == ("position", [(0, 0, 10), (1, 10, 12)])
    assert problems == {"steps_do_not_match": 1}


def test_one_step_time_that_is_off_does_not_turn_the_numbers() -> None:
    steps = samples({411: 0, 412: 10, 413: 22.4, 414: 30})
    found, _ = find([mark(10), mark(22), mark(30)], steps)
    assert [i.index for i in found.iterations] == [412, 413, 414]


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op"])
def test_a_range_that_the_user_names_begins_each_iteration(category: str) -> None:
    calls = [event("execute_model", category, START_NS + at * MS, 3 * MS, 77, 77) for at in (2, 9, 20)]
    alone = event("execute_model", category, START_NS + 4 * MS, MS, 77, 78)
    found, problems = find([*calls, alone, mark(5), mark(15)], terms=RecordingTerms(iteration_range="execute_model"))
    assert table(found) == [(0, 2, 7), (1, 9, 11)]
    assert (found.marks, found.index_from, found.first_step, problems) == ("named_range", "position", None, {})


def test_a_range_that_is_not_there_bounds_nothing() -> None:
    found, _ = find([mark(5), mark(15)], terms=RecordingTerms(iteration_range="execute_model"))
    assert (found.iterations, found.marks) == ([], "none")


def test_profiler_steps_number_themselves() -> None:
    steps = [event(f"ProfilerStep#{n}", "user_annotation", START_NS + at * MS, d * MS, 77, 77) for n, at, d in
             [(5, 0, 10), (6, 10, 12), (7, 22, 8)]]  # fmt: skip
    found, problems = find([*steps, mark(9), mark(21)])
    assert table(found) == [(5, 0, 10), (6, 10, 12), (7, 22, 8)]
    assert (found.marks, found.index_from, problems) == ("profiler_step", "profiler_step", {})


def test_the_sliver_that_a_stopped_profiler_leaves_is_no_iteration() -> None:
    steps = [event(f"ProfilerStep#{n}", "user_annotation", START_NS + at * MS, d, 77, 77) for n, at, d in
             [(1, 0, 10 * MS), (2, 10, 49_000)]]  # fmt: skip
    found, problems = find(steps)
    assert (table(found), problems) == ([(1, 0, 10)], {"iteration_fragment": 1})


def test_a_trace_without_marks_has_no_iterations() -> None:
    found, _ = find([event("aten::mm", "cpu_op", START_NS, 5, 77, 77)])
    assert (found.iterations, found.marks, found.index_from) == ([], "none", "none")


@pytest.mark.parametrize("ends", [{412: 10}, {412: 10, 413: 22, 414: 30, 415: 40}])
def test_the_step_before_need_not_be_known(ends: dict[int, float]) -> None:
    found, _ = find([mark(10), mark(22)], samples(ends))
    assert [(i.index, i.complete) for i in found.iterations] == [(412, None), (413, True)]
