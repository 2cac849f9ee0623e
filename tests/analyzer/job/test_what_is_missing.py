"""Traces that a folder lacks, or holds too many of, are said first and by its name."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from fleetprof_analyzer.capture.folder import SeveralJobs, analyze_directory
from fleetprof_analyzer.job.stragglers.missing import find_missing
from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.views.terminal.report import render_text
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.ranks import PlantedRank, write_ranks
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of

MISSING = [
    # the job's size as said, members of groups without operations, ranks that have a trace -> missing
    (None, [], {0, 1, 2, 3}, []),
    (None, [], {0, 1, 3}, [2]),
    (6, [], {0, 1, 2, 3}, [4, 5]),
    (4, [7], {0, 1, 2, 3}, [7]),
    (4, [3], {0, 1, 2, 3}, []),  # its trace is cut short: it was captured
    (8, [], {0, 1, 2, None}, []),  # the fourth may be any
]


@pytest.mark.parametrize(("size", "unmatched", "delivered", "missing"), MISSING)
def test_ranks_without_a_trace(size: int | None, unmatched: list[int], delivered: set[int], missing: list[int]) -> None:
    job = PlantedJob(JobShape(dp=4, layers=1, iterations=3), PlantedFault(), 1)
    operations = operations_of(job, traces_of(job, Clarity(), 1))[:2]
    for one in operations:
        object.__setattr__(one, "world_size", size)
    assert find_missing(operations, unmatched, delivered) == missing


@pytest.mark.parametrize("groups", [True, False], ids=["groups said", "groups not said"])
def test_a_missing_rank_is_in_the_headline_and_the_verdict(tmp_path: Path, groups: bool) -> None:
    write_ranks(tmp_path, *(PlantedRank(number, groups=groups) for number in (0, 1, 3)))
    report = analyze_directory(tmp_path)
    missing = "Only 3 of the job's 4 ranks are in this report, so nobody can see whether rank 2 is late."
    assert missing in describe(report).answer.sentence
    assert report.stragglers is not None
    assert report.stragglers.not_captured == [2]
    assert report.stragglers.reason.endswith("as far as the captured ranks tell: rank 2 left no trace")


def test_a_rank_whose_trace_cannot_be_read_left_one(tmp_path: Path) -> None:
    write_ranks(tmp_path, *(PlantedRank(number) for number in range(4)))
    (broken,) = tmp_path.rglob("*rank2*.json")
    broken.write_text("no JSON")
    report = analyze_directory(tmp_path)
    assert "The trace of rank 2 is not in this report (its problems say why)" in describe(report).answer.sentence
    assert report.stragglers is not None
    assert "left no trace" not in " ".join([report.stragglers.reason, *report.stragglers.unidentifiable])


def test_a_rank_whose_only_partner_was_not_captured_leaves_the_others_matched() -> None:
    """In groups of two, what has no partner here says nothing about how the rest matches."""
    shape = JobShape(dp=4, tp=2, layers=3)
    slow = np.ones((8, shape.iterations))
    slow[1] = 1.3
    job = PlantedJob(shape, PlantedFault("slow_gpu", 1, device=slow), 3)
    operations = operations_of(job, traces_of(job, Clarity(), 3))
    found = stragglers_of([one for one in operations if one.rank != 6])
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(1, "slow_gpu")]
    assert found.not_captured == [6]
    assert found.unmatched > 0.1 * found.operations / 8


def test_clocks_are_no_start(tmp_path: Path) -> None:
    write_ranks(tmp_path, *(PlantedRank(number, skew_ns=number * 3_000_000_000) for number in range(4)))
    head = describe(analyze_directory(tmp_path))
    assert not [fact for fact in head.facts if "9.0" in fact.value]
    assert not [sentence for sentence in head.sentences if "begin within" in sentence]


@pytest.mark.parametrize(("skew_ns", "words"), [
    (1_000, "included"),
    (3_000_000_000, "9.00 s by their clocks, longer than each recording: these are no traces of one time, or clocks"),
])  # fmt: skip
def test_a_spread_longer_than_the_recordings_is_none(tmp_path: Path, skew_ns: int, words: str) -> None:
    write_ranks(tmp_path, *(PlantedRank(number, skew_ns=number * skew_ns) for number in range(4)))
    (line,) = [line for line in render_text(analyze_directory(tmp_path), 200).splitlines() if "Start spread" in line]
    assert words in line


def change_size(folder: Path, size: int) -> None:
    for file in folder.iterdir():
        document = json.loads(file.read_text())
        document["distributedInfo"]["world_size"] = size
        file.write_text(json.dumps(document))


@pytest.mark.parametrize(("sizes", "words"), [
    ((4, 4), "each of 4 ranks has 2 traces"),
    ((4, 8), "these are traces of several jobs: one of 4 ranks (a/rank0.json), one of 8 ranks (b/rank0.json)"),
])  # fmt: skip
def test_two_jobs_in_one_folder_are_refused(tmp_path: Path, sizes: tuple[int, int], words: str) -> None:
    for name, size in zip("ab", sizes, strict=True):
        (tmp_path / name).mkdir()
        write_ranks(tmp_path / name, *(PlantedRank(number) for number in range(4)))
        change_size(tmp_path / name, size)
    with pytest.raises(SeveralJobs, match=words.replace("(", r"\(").replace(")", r"\)")):
        analyze_directory(tmp_path)


# file's bytes -> the kinds of its problems
def device_of(category: str) -> bytes:
    event = {"ph": "X", "name": "fc", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
    return json.dumps({"traceEvents": [{**event, "cat": "cpu_op"}, {**event, "cat": category}]}).encode()


DAMAGED = gzip.compress(device_of("kernel"))[:10] + b"\xff" * 40
PROBLEMS = {
    "a device that nobody knows": (device_of("mtia_ccp_events"), ["unknown_device"]),
    "a damaged gzip": (DAMAGED, ["corrupt_gzip"]),
    "an empty gzip": (gzip.compress(b""), ["empty_file"]),
    "nothing wrong": (device_of("kernel"), []),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_reason_is_named_once(tmp_path: Path, name: str) -> None:
    data, kinds = PROBLEMS[name]
    (tmp_path / "rank0.json.gz").write_bytes(data)
    assert [problem.kind for problem in analyze_directory(tmp_path).problems] == kinds
