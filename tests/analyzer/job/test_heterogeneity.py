"""Ranks side by side: tables with every iteration in its column, box plots as defined, bounded for a thousand ranks."""

import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.capture.store import analyze_capture, summarise_ranks
from fleetprof_analyzer.job.heterogeneity import MOST_CELLS, measure_heterogeneity, quartile, spread_evenly
from fleetprof_analyzer.rank.iteration_measures import MEASURES
from fleetprof_analyzer.rank.stored_summary import MOST_BYTES
from fleetprof_api import keys
from fleetprof_api.report.heterogeneity import Box, Heterogeneity, RankTable
from fleetprof_api.report.report import Iteration, Rank, Report, TimeBreakdown, write_report
from fleetprof_api.report.report_tables import Stages, StageTime
from harness.memory_store import MemoryStore
from harness.traces.kept_traces import traces_in
from harness.traces.planted.traces import plant_capture
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]


def rank_of(number: int | None, durations: list[int], first: int = 0, **fields: Any) -> Rank:
    return Rank(
        rank=number,
        source=f"r{number}.json",
        kind=fields.pop("kind", "gpu"),
        time_basis="device",
        time_ns=TimeBreakdown(),
        index_from=fields.pop("index_from", "agent"),
        iterations=[
            Iteration(index=first + k, start_ns=0, duration_ns=length, time_ns=TimeBreakdown(compute=length // 2))
            for k, length in enumerate(durations)
        ],
        **fields,
    )


def section_of(*ranks: Rank) -> Heterogeneity:
    (section,) = measure_heterogeneity(ranks)
    return section


def table_of(section: Heterogeneity, measure: str) -> RankTable:
    return next(table for table in section.tables if table.measure == measure)


def test_iterations_stand_in_the_column_of_their_number() -> None:
    section = section_of(rank_of(0, [10, 11, 12], first=7), rank_of(1, [21, 22], first=8))
    assert (section.ranks, section.iterations, section.iterations_by, section.recorded) == (
        [0, 1],
        [7, 8, 9],
        "index",
        3,
    )
    assert table_of(section, "iteration").values == [[10, 11, 12], [None, 21, 22]]
    assert table_of(section, "compute").values == [[5, 5, 6], [None, 10, 11]]
    assert [table.measure for table in section.tables] == ["iteration", "compute"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("position", "position"), ("agent", "position"), ("agent", "profiler_step")],
)
def test_without_proven_numbers_iterations_stand_in_their_order(first: str, second: str) -> None:
    section = section_of(rank_of(0, [10, 11], first=7, index_from=first), rank_of(1, [20], first=9, index_from=second))
    assert (section.iterations, section.iterations_by) == ([0, 1], "position")
    assert table_of(section, "iteration").values == [[10, 11], [20, None]]


def test_stages_and_energy_are_measures_too() -> None:
    stages = Stages(
        stages=[StageTime(stage="data_loading", time_ns=9, iterations_ns=[4, 5])], iterations=2,
        iterations_from="optimizer_step",
    )  # fmt: skip
    with_energy = [
        Iteration(index=0, start_ns=0, duration_ns=1, energy_mj=70),
        Iteration(index=1, start_ns=0, duration_ns=1),
    ]
    first = msgspec.structs.replace(rank_of(0, [10, 10], stages=stages), iterations=with_energy)
    section = section_of(first, rank_of(1, [10, 10]))
    assert table_of(section, "stage_data_loading").values == [[4, 5], [None, None]]
    energy = table_of(section, "energy")
    assert (energy.values, energy.unit, energy.box) == ([[70, None], [None, None]], "mJ", None)


def test_kinds_are_never_in_one_table_and_one_rank_is_no_comparison() -> None:
    ranks = [rank_of(0, [10]), rank_of(1, [10]), rank_of(2, [5], kind="cpu"), rank_of(3, [])]
    assert [(section.kind, section.ranks) for section in measure_heterogeneity(ranks)] == [("gpu", [0, 1])]


def test_a_box_is_made_of_the_ranks_medians() -> None:
    ranks = [rank_of(number, [value, value - 1, value + 99]) for number, value in enumerate([100, 102, 104, 106, 160])]
    assert table_of(section_of(*ranks, rank_of(None, [1])), "iteration").box == Box(
        min=1, low_whisker=100, q1=100, median=103, q3=105, high_whisker=106, max=160, outside=[4], outside_count=2
    )


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=60))
def test_quartiles_are_those_of_the_standard_library(values: list[int]) -> None:
    ordered = sorted(values)
    for number, expected in enumerate(statistics.quantiles(ordered, n=4, method="inclusive"), 1):
        assert quartile(ordered, number) == pytest.approx(expected, abs=1, rel=1e-12)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=40))
def test_whiskers_end_at_values_and_what_is_beyond_is_counted(values: list[int]) -> None:
    box = table_of(section_of(*(rank_of(n, [value + 1]) for n, value in enumerate(values))), "iteration").box
    assert box is not None
    assert box.min <= box.low_whisker <= box.median <= box.high_whisker <= box.max
    beyond = [value + 1 for value in values if not box.low_whisker <= value + 1 <= box.high_whisker]
    assert box.outside_count == len(beyond)
    assert sorted(values[rank] + 1 for rank in box.outside) == sorted(beyond)[: len(box.outside)] or len(beyond) > 32


def test_every_measure_is_documented() -> None:
    section = (ROOT / "docs/measures.md").read_text().split("## Heterogeneity")[1].split("\n## ")[0]
    assert [name for name in MEASURES if f"`{name}`" not in section] == []


def test_a_thousand_ranks_make_a_bounded_report() -> None:
    stages = Stages(
        stages=[StageTime(stage="forward", time_ns=400, iterations_ns=[1] * 400)], iterations=400,
        iterations_from="optimizer_step",
    )  # fmt: skip
    section = section_of(*(rank_of(number, list(range(1, 401)), stages=stages) for number in range(1000)))
    assert (len(section.iterations), section.recorded) == (10, 400)
    assert (section.iterations[0], section.iterations[-1]) == (0, 399)
    for table in section.tables:
        assert sum(len(row) for row in table.values) <= MOST_CELLS
        assert table.box is not None
    # All measures there are, each as full as it can be: the section stays below 4 MB as it is written.
    full = msgspec.structs.replace(section, tables=[section.tables[0]] * len(MEASURES))
    assert len(write_report(Report(heterogeneity=[full]))) < 4_000_000


@pytest.mark.parametrize(("count", "most", "chosen"), [(3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (9, 1, [0]), (0, 3, [])])
def test_columns_are_spread_evenly(count: int, most: int, chosen: list[int]) -> None:
    assert spread_evenly(count, most) == chosen


def test_a_capture_shows_the_rank_that_waits_least() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=6)
    section = analyze_capture(store, "default", planted.uid).heterogeneity[0]
    assert (section.ranks, section.iterations) == ([0, 1, 2, 3, 4, 5], [412, 413, 414, 415, 416])
    box = table_of(section, "exposed_communication").box
    assert box is not None
    assert box.outside == [2]


@pytest.mark.parametrize(("folder", "recording"), [("four_ranks", "rank"), ("ddp4_gloo_cpu", "ddp4_full_")])
def test_cpu_only_ranks_have_the_time_of_their_host_by_iteration(tmp_path: Path, folder: str, recording: str) -> None:
    for trace in traces_in(folder):
        if trace.name.startswith(recording):  # one of two
            (tmp_path / trace.name).symlink_to(trace)
    report = analyze_directory(tmp_path)
    assert len(report.ranks) == 4
    for rank in report.ranks:
        for iteration in rank.iterations:
            t = iteration.time_ns
            assert t is not None
            assert t.span == iteration.duration_ns == t.compute + t.exposed_communication + t.exposed_memory + t.idle
            assert t.compute > 0
    if sum(bool(rank.iterations) for rank in report.ranks) > 1:
        assert "exposed_communication" in [table.measure for table in report.heterogeneity[0].tables]


def test_a_summary_of_the_most_iterations_stays_small() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=1, iterations=420, before=900, after=900)
    assert summarise_ranks(store, "default", planted.uid, shard=0, shards=1) == 1
    assert len(store.get(keys.summary_key("default", planted.uid, 0))) < MOST_BYTES
