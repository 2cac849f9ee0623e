"""The bridge to HTA: what it would stumble over is mended or left out, and the real HTA reads the rest."""

import gzip
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import fleetprof
import pytest
from fleetprof.hta import NothingForHTA
from fleetprof.places import StorePlace
from fleetprof.profile import Profile
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_api import keys
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from harness.memory_store import MemoryStore
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces import plant, plant_capture
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of

ROOT = Path(__file__).parents[2]
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
CPU_ONLY = (
    '{"distributedInfo": {"rank": 5}, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1,'
    ' "tid": 1, "ts": 1790857026000000.000, "dur": 5.000, "args": {}}]}'
)


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    """A folder with what HTA stumbles over: the traces of eight ranks, most of them spoilt."""
    shape = JobShape(dp=8, layers=1, iterations=3)
    sound = [json_of(trace) for trace in traces_of(PlantedJob(shape, PlantedFault(), 1), Clarity(skew_s=0), 1)]
    folder = tmp_path / "uneven"
    folder.mkdir()
    (folder / "rank0.json").write_text(sound[0])
    (folder / "rank1.json.gz").write_bytes(gzip.compress(sound[1].replace('"rank": 1, ', "").encode()))
    (folder / "rank2.json").write_text(json.dumps(json.loads(sound[2])["traceEvents"]))
    (folder / "rank3.json").write_text(sound[3].replace("{", '{"temperature": nan, ', 1))
    (folder / "rank4.json").write_text(sound[4][:-5000])
    (folder / "rank5.json").write_text(CPU_ONLY)
    (folder / "rank6.json").write_text(sound[6].replace("{", '{"other": {"rank": 99}, ', 1))
    (folder / "rank7.json").write_text(sound[7].replace('"rank": 7', '"rank":7'))
    (folder / "rank8.json").write_text("")
    (folder / "z.json").write_text(sound[0])
    return folder


def first_rank(path: Path) -> str:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return text.partition(b'"rank": ')[2][:2].decode().strip(",}")


def test_each_rank_has_one_file_that_names_it_first(uneven: Path, tmp_path: Path) -> None:
    profile = fleetprof.load(uneven)
    with pytest.warns(UserWarning, match="left out for HTA") as warnings:
        files = profile.to_hta(tmp_path / "out")
    assert sorted(str(one.message).partition(": ")[2] for one in warnings) == [
        "rank4.json: damaged (truncated), which ends HTA's reading of all ranks",
        "rank5.json: no work on a GPU, which ends HTA's breakdowns of all ranks",
        "rank8.json: nothing to read (empty_file)",
        "z.json: another trace of rank 0 is used",
    ]
    assert sorted(files) == [0, 1, 2, 3, 6, 7]
    assert sorted(files.values()) == sorted((tmp_path / "out").iterdir())
    assert {rank: first_rank(path) for rank, path in files.items()} == {rank: str(rank) for rank in files}
    # What HTA can use as it is, is not copied.
    assert [rank for rank, path in files.items() if path.is_symlink()] == [0]


def test_the_changed_traces_hold_what_they_held(uneven: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="left out"):
        fleetprof.load(uneven).to_hta(tmp_path / "out")
    before, after = fleetprof.load(uneven).report, fleetprof.load(tmp_path / "out").report
    times = {rank.rank: (rank.time_ns, rank.event_count) for rank in before.ranks}
    assert len(after.ranks) == 6
    # A bare list has no base time; its durations are the same.
    for rank in after.ranks:
        assert (rank.time_ns, rank.event_count) == times[rank.rank]


def test_a_stored_capture_is_fetched(tmp_path: Path) -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=3, iterations=2, failed=(1,))
    report = analyze_capture(store, "default", "demo")
    profile = Profile(report, StorePlace(store, keys.request_prefix("default", "demo")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = profile.to_hta(tmp_path / "out")
    assert sorted(files) == sorted(planted.traces) == [0, 2]
    for rank, path in files.items():
        assert path.read_bytes() == store.get(keys.trace_key("default", "demo", rank))


def test_traces_that_stayed_where_they_were_taken_are_told(tmp_path: Path) -> None:
    store = MemoryStore()
    plant_capture(store, ranks=2, iterations=2)
    report = analyze_capture(store, "default", "demo")
    store.delete([keys.trace_key("default", "demo", rank) for rank in (0, 1)])
    profile = Profile(report, StorePlace(store, keys.request_prefix("default", "demo")))
    with pytest.raises(NothingForHTA, match=r"ranks/0/trace.json.gz: .* it stayed where it was taken"):
        profile.to_hta(tmp_path / "out")


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([(0, "ranks/0/summary.json.gz")], "the trace of rank 0 stayed where it was taken"),
        ([(None, "a.json"), (None, "b.json")], "a.json: nothing says which rank it is; b.json: nothing says"),
    ],
)
def test_what_no_file_can_stand_for_is_told(tmp_path: Path, ranks: list[tuple[Any, str]], words: str) -> None:
    time_ns = TimeBreakdown(span=1)
    report = Report(ranks=[Rank(rank=r, source=s, kind="gpu", time_basis="device", time_ns=time_ns) for r, s in ranks])
    with pytest.raises(NothingForHTA, match=words):
        Profile(report, StorePlace(MemoryStore(), "v1/a/b/")).to_hta(tmp_path / "out")


def test_a_lone_trace_is_rank_0_where_it_does_not_say(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/trace.json").write_text(plant(0, distributed=False).text())
    files = fleetprof.load(tmp_path / "in").to_hta(tmp_path / "out")
    assert {rank: first_rank(path) for rank, path in files.items()} == {0: "0"}


def test_a_folder_with_something_in_it_is_refused(uneven: Path) -> None:
    with pytest.raises(FileExistsError, match="is not empty: HTA would read what is there"):
        fleetprof.load(uneven).to_hta(uneven)


def test_a_report_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingForHTA, match="the report has none"):
        Profile(Report(), StorePlace(MemoryStore(), "v1/a/b/")).to_hta(tmp_path / "out")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, r"HTA is not installed: pip install traceinsight 'pandas<3'"),
        (ModuleType("hta"), r"is not Meta's .*pip uninstall hta; pip install traceinsight"),
    ],
    ids=["missing", "the other project"],
)
def test_without_metas_hta_it_is_said_what_to_install(
    traces: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType | None, words: str
) -> None:
    if module is not None:
        module.__path__ = []
        monkeypatch.setitem(sys.modules, "hta", module)
    with pytest.raises(ImportError, match=words):
        fleetprof.load(traces).open_in_hta()


ASK = """
import contextlib, gc, json, os, sys, warnings
import fleetprof
THEIRS, OURS = ("kernel_time", "idle_time", "compute_time"), ("span", "idle", "compute")
profile = fleetprof.load(sys.argv[1])
with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(sys.stderr):
    warnings.simplefilter("always")
    analysis = profile.open_in_hta()
    left_out = sum("left out for HTA" in str(one.message) for one in said)
    time = analysis.get_temporal_breakdown(visualize=False)
folder = analysis.t.trace_path
ours = profile.tables.ranks
answer = {
    "folder": folder, "was_there": os.path.isdir(folder), "left_out": left_out,
    "theirs": {int(row["rank"]): [row[f"{name}(us)"] for name in THEIRS] for _, row in time.iterrows()},
    "ours": {int(row["rank"]): [int(row[f"time_{name}_ns"]) / 1000 for name in OURS] for _, row in ours.iterrows()},
    "pandas": [str(ours["rank"].dtype), str(ours["source"].dtype)],
}
del analysis
gc.collect()
answer["is_gone"] = not os.path.exists(folder)
print(json.dumps(answer))
"""


@pytest.fixture(scope="session")
def hta() -> Path:
    found = sorted(HOME.glob("hta-*/bridge"))
    if not found:
        if "hta" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail("HTA is not there: run .ci/hta")
        pytest.skip("HTA is not there: run .ci/hta")
    return found[-1].parent / "bin/python"


def ask(hta: Path, where: Path) -> dict[str, Any]:
    path = os.pathsep.join(str(ROOT / room) for room in ("api", "analyzer", "notebook"))
    command: list[str | Path] = [hta, "-W", "ignore", "-c", ASK, where]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_the_real_hta_reads_every_rank_and_finds_our_times(hta: Path, uneven: Path) -> None:
    answer = ask(hta, uneven)
    assert sorted(answer["theirs"], key=int) == ["0", "1", "2", "3", "6", "7"]
    for rank, microseconds in answer["theirs"].items():
        # To a float's digits: not rounded to µs, and the last step is there.
        assert microseconds == pytest.approx(answer["ours"][rank], abs=0.1), rank
    assert answer["left_out"] == 4
    assert answer["was_there"]
    assert answer["is_gone"]
    # And pandas 2 has the same types.
    assert answer["pandas"] == ["Int64", "string"]
