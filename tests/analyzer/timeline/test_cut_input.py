"""A cut of traces that are odd or damaged: what can be read is there, and Perfetto can read it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.timeline.choice import choose_traces
from fleetprof_analyzer.timeline.merged_trace import MergedTrace, Wanted
from fleetprof_analyzer.timeline.trace_window import cut_directory
from fleetprof_analyzer.timeline.window import CutWindow, NoSuchPart, parse_window
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.stragglers import Straggler, Stragglers
from harness.reference.mutated_traces import mutate
from harness.reference.perfetto_rules import Imported, import_trace
from harness.traces.kept_traces import traces_in
from harness.traces.planted.ranks import PlantedRank as PlantedRank
from harness.traces.planted.ranks import plant_rank, write_ranks
from harness.traces.planted.traces import plant, to_json

MOST_EVENTS = 3000


def cut(path: Path, window: str = "all") -> tuple[MergedTrace, Imported]:
    parts: list[bytes] = []
    made = cut_directory(path, Wanted(parse_window(window)), parts.append)
    return made, import_trace(b"".join(parts))


# folder of the traps: what is told of problems, and how many slices of the traces are there
TRAPS = {
    "badescape": ({"repaired_events": 1}, 5),
    "badutf8": ({"repaired_events": 1}, 5),
    "bigint": ({}, 5),
    "compact": ({}, 10),
    "corrupt_dur": ({"absurd_duration": 1}, 200),
    "ctrlchar": ({"repaired_events": 1}, 5),
    "cuda_graph": ({}, 9),
    "duprank": ({}, 10),
    "huge_dur": ({"absurd_duration": 1}, 200),
    "hugeint": ({}, 5),
    "inf_lower": ({"repaired_events": 1}, 5),
    "infinity": ({"repaired_events": 1}, 5),
    "listfmt": ({}, 5),
    "mixed_cpu": ({}, 7),
    "nan": ({"repaired_events": 1}, 5),
    "nan_lower": ({"repaired_events": 1}, 5),
    "neg_dur": ({"negative_duration": 1}, 200),
    "nodist": ({}, 10),
    "strag_skew": ({}, 80),
    "sub_us": ({}, 2001),
    "trunc": ({"truncated": 1}, 9),
    "truncgz": ({"truncated": 1}, 7),
}


@pytest.mark.parametrize("folder", TRAPS)
def test_every_trap_is_cut_as_it_is_read(traps: Path, folder: str) -> None:
    made, found = cut(traps / folder)
    slices = [one for one in found.slices + found.dropped if one["cat"] != "fleetprof"]
    assert ({problem.kind: problem.count for problem in made.problems}, len(slices)) == TRAPS[folder]


@pytest.mark.parametrize("folder", ["empty", "emptyfile", "meta_only"])
def test_where_nothing_is_inside_nothing_is_written(traps: Path, folder: str) -> None:
    with pytest.raises(NoSuchPart, match="there is no trace to cut"):
        cut(traps / folder)


def test_real_ranks_end_their_collectives_within_what_is_told(shared_traces: Path) -> None:
    made, found = cut(shared_traces / "dlrm_v100_8ranks")
    assert len(made.ranks) < 8
    residual = found.top_level["fleetprof"]["clocks"]["residual_most_ns"]
    assert residual == 3500
    for name in {one["name"] for one in found.slices if "AllReduce" in one["name"] and one["cat"] == "kernel"}:
        together = found.named(name)
        for first in range(0, len(together), len(made.ranks)):
            ends = [one["end_ns"] for one in together[first : first + len(made.ranks)]]
            assert max(ends) - min(ends) <= 2 * residual


@pytest.mark.parametrize("name", ["gpu_streams", "nccl_a100"])
def test_a_cut_of_one_rank_measures_as_the_trace_does(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "whole"
    folder.mkdir()
    for file in traces_in(name):
        (folder / file.name).symlink_to(file)
    parts: list[bytes] = []
    cut_directory(folder, Wanted(parse_window("all"), [0]), parts.append)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "cut.json").write_bytes(b"".join(parts))
    (whole,), (again,) = analyze_directory(folder).ranks, analyze_directory(tmp_path / "cut").ranks
    for measure in ("rank", "time_ns", "idle_ns", "iterations", "stages", "launches", "copies", "start_ns"):
        assert getattr(again, measure) == getattr(whole, measure), measure


def test_old_traces_name_a_thread_now_by_number_now_by_text(tmp_path: Path) -> None:
    """Without that, no arrow from a launch would find its call."""
    document = plant_rank(PlantedRank(0))
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            event["tid"] = str(event["tid"])
    (tmp_path / "rank0.json").write_text(to_json(document))
    _, found = cut(tmp_path)
    assert len(found.arrows) == 3 * 4


@pytest.mark.parametrize("batch", range(2))
def test_damaged_traces_are_cut_into_what_perfetto_reads(tmp_path: Path, batch: int) -> None:
    document = json.loads(plant(batch, iterations=2, segments=2).text(), parse_float=Decimal)
    (tmp_path / "sound.json").write_text(plant(1, iterations=2, segments=2).text())
    for seed in range(50 * batch, 50 * (batch + 1)):
        (tmp_path / "damaged.json").write_bytes(mutate(seed, document))
        made, found = cut(tmp_path)
        assert len(found.slices) < MOST_EVENTS, seed
        assert [one.rank for one in made.ranks if one.source == "sound.json"] == [1], seed


def test_clocks_that_count_from_somewhere_begin_together(tmp_path: Path) -> None:
    for number in range(2):
        document = plant_rank(PlantedRank(number, talks=False, skew_ns=number * 10**9))
        del document["baseTimeNanoseconds"]
        (tmp_path / f"rank{number}.json").write_text(json.dumps(document, default=lambda number: float(number.digits)))
    made, found = cut(tmp_path, "8")
    assert [one.offset_ns for one in made.ranks] == [0, -(10**9)]
    assert len({one["start_ns"] for one in found.named("ProfilerStep#8")}) == 1
    assert "put where the first window begins" in made.ranks[1].apart
    assert "baseTimeNanoseconds" not in found.top_level


@pytest.mark.parametrize(
    ("text", "window"),
    {
        "7": CutWindow("iterations", 7, 7),
        "7..9": CutWindow("iterations", 7, 9),
        "worst": CutWindow("worst"),
        "all": CutWindow("all"),
        "250ms..1.5s": CutWindow("time", 250_000_000, 1_500_000_000),
        "0us..0.5us": CutWindow("time", 0, 500),
    }.items(),
)
def test_windows_are_said_in_few_words(text: str, window: CutWindow) -> None:
    assert parse_window(text) == window


@pytest.mark.parametrize(
    "text", ["", "9..7", "7..", "-1", "1s", "1s..1s", "2s..1s", "1..2s", "slowest", "7...9", "1h..2h"]
)
def test_other_words_are_refused_with_the_rule(text: str) -> None:
    with pytest.raises(ValueError, match="must "):
        parse_window(text)


def job(ranks: int, named: list[int], findings: list[int] | None = None, whole: list[int] | None = None) -> Report:
    return Report(
        ranks=[
            Rank(rank=number, source=f"r{number}", kind="gpu", time_basis="device", time_ns=TimeBreakdown())
            for number in range(ranks)
        ],
        stragglers=Stragglers(ranks=[Straggler(rank=rank, lateness_ns=1, cause="host") for rank in named]),
        findings=[Finding(kind="x", message="x", ranks=findings or [])],
        whole_traces=whole or [],
    )


CHOICES = [
    (job(3, [2]), [0, 1, 2]),
    (job(64, [40], whole=[40, 7, 21]), [7, 21, 40]),
    (job(64, [40], findings=[3, 40], whole=[40, 21]), [3, 21, 40]),
    (job(64, [], whole=[7, 21]), [7, 21]),
    (job(64, list(range(10, 20)), whole=[10, 21]), [10, 11, 12, 13, 14, 15, 16, 21]),
    (job(64, []), list(range(8))),
]


@pytest.mark.parametrize(("report", "chosen"), CHOICES)
def test_the_default_is_who_is_named_and_one_to_compare_with(report: Report, chosen: list[int]) -> None:
    assert [entry.rank for entry in choose_traces(report, None, {entry.source for entry in report.ranks})] == chosen


def test_a_rank_whose_trace_was_not_stored_cannot_be_cut() -> None:
    report = job(4, [2])
    assert [entry.rank for entry in choose_traces(report, None, {"r0", "r2"})] == [0, 2]
    with pytest.raises(NoSuchPart, match="there is no trace of rank 1: there are ranks 0, 2"):
        choose_traces(report, [0, 1], {"r0", "r2"})


def test_a_cut_of_a_cut_is_a_cut(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    first = tmp_path / "first" / "rank0.json"
    first.parent.mkdir()
    parts: list[bytes] = []
    cut_directory(tmp_path / "rank0.json", Wanted(parse_window("7..9")), parts.append)
    first.write_bytes(b"".join(parts))
    _, found = cut(first, "8")
    assert len(found.named("gemm")) == 1
    assert len([one for one in found.arrows if one[1]["name"] == "gemm"]) == 1
