"""From store or folder to report: every rank told, nothing spoiled by a bad file, merge in any order."""

import gzip
import itertools
import json
from pathlib import Path

import msgspec
import pytest
from fleetprof_analyzer.capture.folder import NothingToAnalyze, analyze_directory
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.rank.identity import identify
from fleetprof_analyzer.rank.summary import RankSummary, merge
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import TraceMetadata
from fleetprof_api import keys
from fleetprof_api.report.report import Problem, Report, json_schema, read_report
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant, plant_capture
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator


def kinds(report: Report) -> list[tuple[str, int | None]]:
    return sorted(((problem.kind, problem.rank) for problem in report.problems), key=str)


def test_a_whole_capture() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=4, iterations=5, first_step=412)
    steps: list[tuple[int, int, str]] = []
    report = analyze_capture(store, "default", planted.uid, progress=lambda *step: steps.append(step))

    assert steps == [(n + 1, 4, f"ranks/{n}/trace.json.gz") for n in range(4)]
    assert [rank.rank for rank in report.ranks] == [0, 1, 2, 3]
    for rank in report.ranks:
        truth = planted.traces[rank.rank or 0]
        assert {name: getattr(rank.time_ns, name) for name in truth.truth} == truth.truth
        assert [i.index for i in rank.iterations] == [412, 413, 414, 415, 416]
        assert [i.start_ns for i in rank.iterations] == truth.starts_ns
        assert [i.duration_ns for i in rank.iterations] == truth.durations_ns
        assert (rank.kind, rank.time_basis, rank.first_step) == ("gpu", "device", 412)
    assert report.start.same_first_iteration is True
    assert report.start.verified_by == "agent_steps"
    assert [rank.verified for rank in report.start.ranks] == [True] * 4
    assert report.start.spread_ns == 3 * 137_000
    assert report.capture_cost is not None
    assert report.capture_cost.during.iterations == 5
    assert report.request is not None
    assert (report.request.target, report.request.asked_iterations) == ("Job/llama", 5)
    assert [entry.state for entry in report.ledger] == ["UPLOADED"] * 4
    assert [host.ranks for host in report.hosts] == [[0, 1, 2, 3]]
    assert report.problems == []
    assert read_report(store.get(keys.report_key("default", planted.uid))) == report
    assert store.get(keys.report_page_key("default", planted.uid)).startswith(b"<!doctype html>")


def test_a_failed_rank_is_told_by_the_ledger() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=3, failed=(1,))
    report = analyze_capture(store, "default", planted.uid)
    assert [rank.rank for rank in report.ranks] == [0, 2]
    assert [(entry.rank, entry.reason) for entry in report.ledger] == [(0, None), (1, "ProcessExited"), (2, None)]
    assert report.problems == []


def test_one_bad_file_spoils_no_other_rank() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=4)
    good = store.get(keys.trace_key("default", planted.uid, 1))
    store.put(keys.trace_key("default", planted.uid, 0), b"\x00garbage")
    store.put(keys.trace_key("default", planted.uid, 1), good[: len(good) // 2])
    store.put(keys.samples_key("default", planted.uid, 2), b"no gzip")
    report = analyze_capture(store, "default", planted.uid)
    assert [(rank.rank, rank.truncated) for rank in report.ranks] == [(1, True), (2, False), (3, False)]
    assert {("not_a_trace", 0), ("truncated", 1), ("samples_unreadable", 2)} <= set(kinds(report))
    rank3 = report.ranks[2]
    assert rank3.time_ns.span == planted.traces[3].truth["span"]


def test_a_trace_of_another_rank_or_capture_is_doubted() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2)
    store.put(keys.trace_key("default", planted.uid, 0), plant(7, trace_id="other-r7").gzipped())
    report = analyze_capture(store, "default", planted.uid)
    assert {("rank_contradicted", 0), ("trace_id_contradicted", 0)} <= set(kinds(report))


def test_a_trace_that_the_ledger_promises_and_the_store_lacks() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2)
    store.delete([keys.trace_key("default", planted.uid, 1)])
    assert kinds(analyze_capture(store, "default", planted.uid)) == [("rank_missing", 1)]


def test_a_rank_that_began_a_step_later_is_found_out() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2, first_step=412)
    samples = json.loads(gzip.decompress(store.get(keys.samples_key("default", planted.uid, 1))))
    samples["steps"]["step"] = [step + 1 for step in samples["steps"]["step"]]
    store.put(keys.samples_key("default", planted.uid, 1), gzip.compress(json.dumps(samples).encode()))
    report = analyze_capture(store, "default", planted.uid)
    assert report.start.same_first_iteration is False
    assert [rank.verified for rank in report.start.ranks] == [True, False]
    assert ("first_step_differs", 1) in kinds(report)


def test_without_the_agent_nothing_is_claimed_about_the_first_iteration() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2, agent=False)
    report = analyze_capture(store, "default", planted.uid)
    assert (report.start.same_first_iteration, report.start.verified_by) == (None, "none")
    assert report.capture_cost is None
    assert [i.index for i in report.ranks[0].iterations] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("agent", "window", "listed"),
    [
        # Without the agent nothing tells that the first iteration is whole, so it is not counted.
        (False, {"iterations": 5}, slice(1, 6)),
        (True, {"iterations": 5}, slice(0, 5)),
        (False, {"iterations": 20}, slice(1, 8)),
        (False, {"durationMillis": 60}, slice(1, 8)),
    ],
)
def test_a_window_by_time_is_cut_to_the_iterations_that_were_asked(
    agent: bool, window: dict[str, int], listed: slice
) -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2, iterations=8, agent=agent)
    request = json.loads(store.get(keys.request_key("default", planted.uid)))
    request["spec"]["window"] = window
    store.put(keys.request_key("default", planted.uid), json.dumps(request).encode())
    ledger = json.loads(store.get(keys.ledger_key("default", planted.uid)))
    ledger |= {"start_mode": "time", "first_step": None, "start_unix_ns": 1}
    store.put(keys.ledger_key("default", planted.uid), json.dumps(ledger).encode())

    report = analyze_capture(store, "default", planted.uid)

    for rank in report.ranks:
        truth = planted.traces[rank.rank or 0]
        assert [i.start_ns for i in rank.iterations] == truth.starts_ns[listed]
        assert [i.duration_ns for i in rank.iterations] == truth.durations_ns[listed]
        assert {name: getattr(rank.time_ns, name) for name in truth.truth} == truth.truth
    if agent:
        assert report.capture_cost is not None
        assert report.capture_cost.during.iterations == 8


def test_a_capture_without_request_and_ledger_is_still_analysed() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2)
    store.delete([keys.request_key("default", planted.uid), keys.ledger_key("default", planted.uid)])
    assert len(analyze_capture(store, "default", planted.uid).ranks) == 2


def test_a_folder_of_traces(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for rank in range(3):
        (tmp_path / "sub" / f"worker_rank{rank}.json.gz").write_bytes(plant(rank, distributed=rank != 1).gzipped())
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("no trace")
    report = analyze_directory(tmp_path)
    assert [(rank.rank, rank.source) for rank in report.ranks] == [(n, f"sub/worker_rank{n}.json.gz") for n in range(3)]
    assert report.problems == []
    assert report.title == tmp_path.name


def test_a_single_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(plant(5).text())
    assert [(rank.rank, rank.source) for rank in analyze_directory(file).ranks] == [(5, "trace.json")]


def test_the_samples_beside_a_trace_are_used(tmp_path: Path) -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2)
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "trace.json.gz").write_bytes(store.get(keys.trace_key("default", planted.uid, rank)))
        (tmp_path / str(rank) / "samples.json.gz").write_bytes(
            store.get(keys.samples_key("default", planted.uid, rank))
        )
    report = analyze_directory(tmp_path)
    assert report.start.verified_by == "agent_steps"
    assert [len(rank.device_series) > 0 for rank in report.ranks] == [True, True]


def test_nothing_to_analyse_is_said(tmp_path: Path) -> None:
    with pytest.raises(NothingToAnalyze, match="give the folder"):
        analyze_directory(tmp_path)
    with pytest.raises(FileNotFoundError):
        analyze_directory(tmp_path / "absent")


def test_an_unreadable_file_is_a_problem_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "r0.json").write_text(plant(0).text())
    (tmp_path / "r1.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "r2.json").mkdir()
    assert [rank.rank for rank in analyze_directory(tmp_path).ranks] == [0]


def test_samples_that_cannot_be_read_cost_themselves_only(tmp_path: Path) -> None:
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(plant(4).text().encode()))
    (tmp_path / "samples.json.gz").symlink_to("/proc/self/mem")  # a file that may be opened, and whose reading fails
    report = analyze_directory(tmp_path)
    assert [rank.rank for rank in report.ranks] == [4]
    (problem,) = [problem for problem in report.problems if problem.kind == "samples_unreadable"]
    assert problem.message == "samples.json.gz cannot be read: Input/output error"


def test_every_report_follows_the_published_schema() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=3, failed=(1,))
    analyze_capture(store, "default", planted.uid)
    document = json.loads(store.get(keys.report_key("default", planted.uid)))
    Draft202012Validator(json_schema()).validate(document)


@pytest.mark.parametrize(
    ("metadata", "source", "assigned", "rank", "problem"),
    [
        (TraceMetadata(rank=3), "rank7.json", None, 3, None),
        (TraceMetadata(trace_id="llama-abc-r12"), "x.json", None, 12, None),
        (TraceMetadata(trace_id="req-full-rank2"), "x.json", None, 2, None),
        (TraceMetadata(), "trace_8_rank_1.json", None, 1, None),
        (TraceMetadata(), "rank-34.Jul_15.pt.trace.json.gz", None, 34, None),
        (TraceMetadata(), "ranks/6/trace.json.gz", None, 6, None),
        (TraceMetadata(), "exp[a-b]-rank[3].17410000003.pt.trace.json.gz", None, 3, None),
        (TraceMetadata(), "step=40_rank=3.json", None, 3, None),
        (TraceMetadata(), "run (rank 3).json", None, 3, None),
        (TraceMetadata(), "worker0.json", None, None, "rank_unknown"),
        (TraceMetadata(), "bankrank.json", None, None, "rank_unknown"),
        (TraceMetadata(trace_id="F368985EBA6F4A07A792D39DBAECA5AA"), "gpu.json", None, None, "rank_unknown"),
        (TraceMetadata(rank=3), "x.json", 5, 5, "rank_contradicted"),
        (TraceMetadata(rank=5), "x.json", 5, 5, None),
    ],
)
def test_which_rank_a_trace_belongs_to(
    metadata: TraceMetadata, source: str, assigned: int | None, rank: int | None, problem: str | None
) -> None:
    problems = Problems()
    assert identify(metadata, source, assigned, problems) == rank
    assert [entry.kind for entry in problems.entries("", None)] == ([problem] if problem else [])


SUMMARIES = st.lists(
    st.builds(
        RankSummary,
        source=st.sampled_from(["a.json", "b.json", "c.json"]),
        rank_number=st.one_of(st.none(), st.integers(0, 3)),
        problems=st.lists(st.builds(Problem, kind=st.just("truncated"), message=st.just("m"), count=st.integers(1, 2))),
    ),
    max_size=5,
)


@given(st.lists(SUMMARIES, min_size=3, max_size=3))
def test_merge_is_associative_commutative_and_idempotent(parts: list[list[RankSummary]]) -> None:
    whole = merge(parts)
    for order in itertools.permutations(parts):
        assert merge(order) == whole
        assert merge([merge(order[:2]), order[2]]) == merge([order[0], merge(order[1:])]) == whole
    assert merge([whole, whole]) == whole


def test_a_summary_is_small() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=1, before=900, after=900, iterations=100)
    report = analyze_capture(store, "default", planted.uid)
    assert len(msgspec.json.encode(report)) < 100_000
