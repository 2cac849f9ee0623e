"""`fleetprof.load`: each way to name a report ends in that report, and a wrong one in what to give instead."""

from pathlib import Path
from typing import Any

import fleetprof
import pytest
from fleetprof_analyzer.capture.folder import NothingToAnalyze
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_api import keys
from fleetprof_api.report.report import Report, UnreadableReport, write_report
from fleetprof_store.base import StoreError
from fleetprof_store.captures import NoSuchCapture
from fleetprof_store.directory import DirectoryStore
from harness.traces.planted.traces import plant, plant_capture


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    """A store with an analysed capture and one that never came to a report."""
    store = DirectoryStore(tmp_path / "store", b"s" * 32, "")
    plant_capture(store, ranks=2, iterations=2)
    analyze_capture(store, "default", "demo")
    plant_capture(store, ranks=1, iterations=1, uid="failed", failed=(0,))
    return store


def test_a_folder_of_traces_is_analysed(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"r{rank}.json.gz").write_bytes(plant(rank).gzipped())
    profile = fleetprof.load(tmp_path)
    assert [rank.rank for rank in profile.report.ranks] == [0, 1]
    assert profile.place.path("r1.json.gz") == tmp_path / "r1.json.gz"


def test_one_trace_is_analysed(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(plant(3).text())
    profile = fleetprof.load(tmp_path / "trace.json")
    assert [rank.rank for rank in profile.report.ranks] == [3]
    with profile.place.open(profile.report.ranks[0].source) as file:
        assert file.read(1) == b"{"


@pytest.mark.parametrize("name", ["report.json", "another.json"])
def test_a_report_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(write_report(Report(title="kept")))
    assert fleetprof.load(tmp_path / name).report.title == "kept"
    if name == "report.json":
        assert fleetprof.load(str(tmp_path)).report.title == "kept"


@pytest.mark.parametrize("reference", ["latest-with-report", "demo", "dem"])
def test_a_capture_of_a_directory_store_is_found_by_name_and_uid(store: DirectoryStore, reference: str) -> None:
    if reference == "latest-with-report":
        store.delete([keys.ledger_key("default", "failed")])
        reference = "latest"
    profile = fleetprof.load(reference, store=store.root)
    assert (profile.report.title, len(profile.report.ranks)) == ("llama-look", 2)
    with profile.place.open(profile.report.ranks[1].source) as file:
        assert file.read(2) == b"\x1f\x8b"


def test_a_capture_of_local_mode_is_found_without_its_hub(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEETPROF_STATE", str(tmp_path))
    assert len(fleetprof.load("demo").report.ranks) == 2


def test_a_capture_folder_is_read_where_it_lies(store: DirectoryStore) -> None:
    profile = fleetprof.load(store.root / keys.request_prefix("default", "demo"))
    source = profile.report.ranks[0].source
    assert profile.place.path(source) == store.root / keys.trace_key("default", "demo", 0)


@pytest.mark.s3
def test_a_capture_in_s3_by_address_and_by_name(s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3_server.make_bucket()
    stored = s3_server.make_store(bucket, "team")
    plant_capture(stored, ranks=2, iterations=2)
    analyze_capture(stored, "default", "demo")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    settings = f"?endpoint={s3_server.endpoint_url}&region=us-east-1"
    for profile in (
        fleetprof.load(f"s3://{bucket}/team/v1/default/demo{settings}"),
        fleetprof.load(f"s3://{bucket}/team/v1/default/demo/report.html{settings}"),
        fleetprof.load("latest", store=f"s3://{bucket}/team{settings}"),
    ):
        assert len(profile.report.ranks) == 2
        assert profile.place.address == f"s3://{bucket}/team/v1/default/demo/"
        assert profile.place.path(profile.report.ranks[0].source) is None
        with profile.place.open(profile.report.ranks[0].source) as file:
            assert file.read(2) == b"\x1f\x8b"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreError):
        fleetprof.load(f"s3://{bucket}/team/v1/default/demo{settings}")


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ("nowhere/at/all", FileNotFoundError, "there is no nowhere/at/all"),
        (Path("nowhere"), FileNotFoundError, "there is no nowhere"),
        ("gpt", NoSuchCapture, "there is no capture gpt"),
        ("failed", FileNotFoundError, "has no report.json: the capture ended with PartiallyCaptured"),
        ("empty", NothingToAnalyze, r"no \*.json or \*.json.gz below empty"),
        ("store", ValueError, r"is an object store, not one capture: fleetprof.load\('latest', store="),
        ("newer/report.json", UnreadableReport, "upgrade fleetprof"),
        ("s3://bucket/prefix", ValueError, "s3://bucket/prefix names no capture: give s3://bucket/prefix/v1/"),
        ("s3://key:secret@bucket/v1/a/b", ValueError, "without credentials"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_what_to_give(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, error: type, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer/report.json").write_bytes(b'{"schema_version": 99}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLEETPROF_STATE", str(tmp_path))
    with pytest.raises(error, match=words):
        fleetprof.load(where)


def test_looking_for_a_capture_makes_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETPROF_STATE", str(tmp_path / "state"))
    with pytest.raises(NoSuchCapture, match="no capture yet"):
        fleetprof.load("latest")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("source", ["../secret.json", "/etc/passwd", "absent.json"])
def test_a_report_from_elsewhere_cannot_name_files_outside_its_folder(tmp_path: Path, source: str) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "job").mkdir()
    (tmp_path / "job/report.json").write_bytes(write_report(Report()))
    with pytest.raises(LookupError, match="there is no"):
        fleetprof.load(tmp_path / "job").place.open(source)
