"""Every trap of the public traces' README is read as its table of right answers says."""

from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_api.report.report import Rank, Report

US = 1000

# folder: (span, compute, overlapped, exposed communication, exposed memory, idle) in µs of its only rank
TIMES = {
    "cuda_sync": (90, 20, 0, 0, 0, 70),
    "dup_corr": (40, 20, 0, 0, 0, 20),
    "cuda_graph": (48, 40, 0, 0, 0, 8),
    "overlap_same_stream": (70, 60, 0, 0, 0, 10),
    "alt_streams": (300, 300, 0, 0, 0, 0),
    "listfmt": (90, 20, 0, 0, 0, 70),
    "rank_other_key": (90, 20, 0, 0, 0, 70),
    "sub_us": (999.9, 900, 0, 0, 0, 99.9),
    "comm_names": (115, 0, 0, 90, 0, 25),
    "type_names": (95, 60, 0, 0, 15, 20),
    "nan": (90, 20, 0, 0, 0, 70),
    "nan_lower": (90, 20, 0, 0, 0, 70),
    "infinity": (90, 20, 0, 0, 0, 70),
    "inf_lower": (90, 20, 0, 0, 0, 70),
    "bigint": (90, 20, 0, 0, 0, 70),
    "hugeint": (90, 20, 0, 0, 0, 70),
    "badescape": (90, 20, 0, 0, 0, 70),
    "badutf8": (90, 20, 0, 0, 0, 70),
    "ctrlchar": (90, 20, 0, 0, 0, 70),
    "corrupt_dur": (999, 891, 0, 0, 0, 108),
    "huge_dur": (999, 891, 0, 0, 0, 108),
    "neg_dur": (999, 891, 0, 0, 0, 108),
}

# folder: the problems that must be said, as (kind, count); none where JSON allows the value
PROBLEMS = {
    "nan": [("repaired_events", 1)],
    "nan_lower": [("repaired_events", 1)],
    "infinity": [("repaired_events", 1)],
    "inf_lower": [("repaired_events", 1)],
    "badescape": [("repaired_events", 1)],
    "badutf8": [("repaired_events", 1)],
    "ctrlchar": [("repaired_events", 1)],
    "bigint": [],
    "hugeint": [],
    "corrupt_dur": [("absurd_duration", 1)],
    "huge_dur": [("absurd_duration", 1)],
    "neg_dur": [("negative_duration", 1)],
    "empty": [("no_events", 1)],
    "meta_only": [("no_events", 1)],
    "emptyfile": [("empty_file", 1)],
    "trunc": [("truncated", 1), ("work_missing", 1)],
    "truncgz": [("truncated", 1)],
    "nodist": [("rank_unknown", 1), ("rank_unknown", 1)],
    "duprank": [("rank_duplicate", 2)],
    "mixed_cpu": [],
    "compact": [],
    "rank_other_key": [],
    "cuda_sync": [],
}


def microseconds(rank: Rank) -> tuple[float, ...]:
    t = rank.time_ns
    parts = (t.span, t.compute, t.overlapped_communication, t.exposed_communication, t.exposed_memory, t.idle)
    return tuple(part / US for part in parts)


def kinds(report: Report) -> list[tuple[str, int]]:
    return sorted((problem.kind, problem.count) for problem in report.problems)


@pytest.mark.parametrize("folder", TIMES)
def test_time_is_what_was_planted(traps: Path, folder: str) -> None:
    (rank,) = analyze_directory(traps / folder).ranks
    assert microseconds(rank) == TIMES[folder]
    assert rank.kind == "gpu"


@pytest.mark.parametrize("folder", PROBLEMS)
def test_what_was_lost_or_repaired_is_counted_and_nothing_else_is(traps: Path, folder: str) -> None:
    assert kinds(analyze_directory(traps / folder)) == sorted(PROBLEMS[folder])


@pytest.mark.parametrize("folder", ["empty", "meta_only", "emptyfile"])
def test_a_file_without_events_is_a_named_problem_not_a_rank(traps: Path, folder: str) -> None:
    report = analyze_directory(traps / folder)
    assert report.ranks == []
    assert [problem.source for problem in report.problems] == ["r0.json"]


@pytest.mark.parametrize(("folder", "name"), [("trunc", "r{}.json"), ("truncgz", "r{}.json.gz")])
def test_a_cut_rank_is_read_as_far_as_it_goes_and_marked(traps: Path, folder: str, name: str) -> None:
    whole, cut = analyze_directory(traps / folder).ranks
    assert (whole.rank, whole.source, whole.truncated) == (0, name.format(0), False)
    assert microseconds(whole) == (90, 20, 0, 0, 0, 70)
    assert (cut.source, cut.truncated) == (name.format(1), True)
    assert 0 < cut.event_count < whole.event_count


def test_a_rank_without_gpu_rows_is_reported_as_what_it_is(traps: Path) -> None:
    gpu, cpu = analyze_directory(traps / "mixed_cpu").ranks
    assert (gpu.rank, gpu.kind, gpu.time_basis) == (0, "gpu", "device")
    assert (cpu.rank, cpu.kind, cpu.time_basis) == (1, "cpu", "host")
    assert microseconds(cpu) == (5, 5, 0, 0, 0, 0)


def test_traces_without_a_rank_are_both_kept_and_doubted(traps: Path) -> None:
    report = analyze_directory(traps / "nodist")
    assert [(rank.rank, rank.source) for rank in report.ranks] == [(None, "w0.json"), (None, "w1.json")]


def test_two_files_of_one_rank_are_both_kept_and_doubted(traps: Path) -> None:
    report = analyze_directory(traps / "duprank")
    assert [(rank.rank, rank.source) for rank in report.ranks] == [(0, "h0.json"), (0, "h1.json")]
    assert [microseconds(rank) for rank in report.ranks] == [(90, 20, 0, 0, 0, 70)] * 2


def test_the_rank_is_that_of_distributed_info(traps: Path) -> None:
    assert [rank.rank for rank in analyze_directory(traps / "compact").ranks] == [2, 3]
    assert [rank.rank for rank in analyze_directory(traps / "rank_other_key").ranks] == [1]


def test_a_rank_without_its_first_step_is_seen_as_that(traps: Path) -> None:
    report = analyze_directory(traps / "missing_step")
    assert [[i.index for i in rank.iterations] for rank in report.ranks] == [[1, 2, 3, 4], [2, 3, 4]] + [
        [1, 2, 3, 4]
    ] * 2
    assert report.start.same_first_iteration is False


def test_base_time_gives_unix_time(traps: Path) -> None:
    report = analyze_directory(traps / "basetime")
    assert [rank.start_ns for rank in report.ranks] == [1_700_000_000_000_000_000] * 4
    assert {rank.time_origin for rank in report.ranks} == {"unix"}
    assert report.start.spread_ns == 0


@pytest.mark.parametrize("folder", ["strag_old", "strag_dev", "stream0", "basetime"])
def test_the_late_rank_waits_least_in_communication(traps: Path, folder: str) -> None:
    exposed = [rank.time_ns.exposed_communication for rank in analyze_directory(traps / folder).ranks]
    assert exposed == [1600 * US, 1600 * US, 400 * US, 1600 * US]
