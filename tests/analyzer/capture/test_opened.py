"""Traces and reports that somebody has become captures of a store, with timelines, whatever they are given as."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import NothingToAnalyze, SeveralJobs
from fleetprof_analyzer.capture.opened import NAMESPACE, LaidCapture, name_inputs, open_input
from fleetprof_api import keys
from fleetprof_api.report.report import Report, read_report
from fleetprof_store.directory import DirectoryStore
from harness.timelines.timeline_reader import FleetFile

TRACES = Path(__file__).parents[2] / "data/traces"


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store", b"of a test alone.", "http://unused.invalid")


def open_all(store: DirectoryStore, scratch: Path, *paths: Path) -> list[LaidCapture]:
    """The objects that are laid into the store, in order."""
    laid = []
    for number, one in enumerate(name_inputs(paths)):
        (scratch / f"s{number}").mkdir()
        laid += open_input(store, one, scratch / f"s{number}", progress=lambda *_: None)
    return laid


def report_of(store: DirectoryStore, capture: LaidCapture) -> Report:
    return read_report(store.get(keys.report_key(NAMESPACE, capture.uid)))


def test_a_folder_is_one_capture_with_a_timeline_and_its_traces(store: DirectoryStore, tmp_path: Path) -> None:
    folder = tmp_path / "my job (1)"
    shutil.copytree(TRACES / "gpu_slow_rank", folder, ignore=shutil.ignore_patterns("truth.json"))
    plain = folder / "rank1.json"
    plain.write_bytes(gzip.decompress((folder / "rank1.json.gz").read_bytes()))
    (folder / "rank1.json.gz").unlink()
    calls: list[tuple[int, int, str]] = []
    (one,) = name_inputs([folder])
    (tmp_path / "scratch").mkdir()
    (capture,) = open_input(store, one, tmp_path / "scratch", progress=lambda *words: calls.append(words))
    assert (one.what, capture.title, capture.uid[:9]) == ("my job (1)", "my job (1)", "my-job-1-")
    assert calls == [(n + 1, 4, name) for n, name in enumerate(sorted(path.name for path in folder.iterdir()))]
    assert [rank.rank for rank in report_of(store, capture).ranks] == [0, 1, 2, 3]
    for rank in range(4):
        assert store.get(keys.rank_timeline_key(NAMESPACE, capture.uid, rank))
        trace = gzip.decompress(store.get(keys.trace_key(NAMESPACE, capture.uid, rank)))
        assert json.loads(trace)["traceEvents"]
    fleet = FleetFile(store.get(keys.fleet_timeline_key(NAMESPACE, capture.uid)))
    assert fleet.header.ranks.detail == ["full"] * 4
    assert sorted(path.name for path in folder.iterdir()) == [
        "rank0.json.gz",
        "rank1.json",
        "rank2.json.gz",
        "rank3.json.gz",
    ]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_files_are_one_capture_and_reports_are_their_own(store: DirectoryStore, tmp_path: Path) -> None:
    files = [TRACES / f"late_rank/rank{rank}.json.gz" for rank in range(4)]
    (of_files,) = open_all(store, tmp_path, *files)
    report = tmp_path / "kept.json"
    report.write_bytes(store.get(keys.report_key(NAMESPACE, of_files.uid)))
    (tmp_path / "again").mkdir()
    of_report, beside = open_all(store, tmp_path / "again", files[0], report)[::-1]
    assert of_files.title == "rank0.json.gz and 3 more"
    assert beside.title == "rank0.json.gz" or of_report.title == "rank0.json.gz"
    titles = {capture.title: capture for capture in (of_report, beside)}
    assert len(report_of(store, titles["rank0.json.gz and 3 more"]).ranks) == 4
    assert len(report_of(store, titles["rank0.json.gz"]).ranks) == 1


def test_a_single_trace_without_a_rank_stands_as_rank_0_with_its_timeline(
    store: DirectoryStore, tmp_path: Path
) -> None:
    trace = json.loads(gzip.decompress((TRACES / "gpu_loop/rank0.json.gz").read_bytes()))
    trace.pop("distributedInfo", None)
    trace.pop("trace_id", None)
    path = tmp_path / "worker.pt.trace.json"
    path.write_text(json.dumps(trace))
    (capture,) = open_all(store, tmp_path, path)
    report = report_of(store, capture)
    assert [rank.rank for rank in report.ranks] == [0]
    assert "rank_unknown" in {problem.kind for problem in report.problems}
    assert store.get(keys.rank_timeline_key(NAMESPACE, capture.uid, 0))


def test_a_folder_of_several_jobs_is_a_capture_for_each(store: DirectoryStore, tmp_path: Path) -> None:
    for name in ("late_rank", "late_rank_stream_0"):
        shutil.copytree(TRACES / name, tmp_path / "runs" / name)
    captures = open_all(store, tmp_path, tmp_path / "runs")
    assert sorted(capture.title for capture in captures) == ["late_rank", "late_rank_stream_0"]
    assert {len(report_of(store, capture).ranks) for capture in captures} == {4}
    assert len({capture.uid for capture in captures}) == 2


def test_where_nothing_can_be_told_apart_or_found_it_is_said(store: DirectoryStore, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for name in ("late_rank", "late_rank_stream_0"):
        for rank in range(2):
            shutil.copy(TRACES / name / f"rank{rank}.json.gz", flat / f"{name}_rank{rank}.json.gz")
    with pytest.raises(SeveralJobs, match="give the folder of one"):
        open_all(store, tmp_path, flat)
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "once more").mkdir()
    with pytest.raises(NothingToAnalyze, match="give the folder that holds the traces"):
        open_all(store, tmp_path / "once more", empty)
