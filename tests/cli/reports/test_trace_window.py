"""`--trace-window`: a cut of traces that one has, or of a capture in the store."""

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.main import main
from fleetprof_store.directory import DirectoryStore
from harness.reference.perfetto_rules import import_trace
from harness.traces.planted.ranks import PlantedRank, write_ranks
from harness.traces.planted.traces import plant_capture

Fleetprof = Callable[..., subprocess.CompletedProcess[str]]


def test_analyze_writes_a_cut_of_a_folder(fleetprof: Fleetprof, tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1, skew_ns=10**9))
    out = tmp_path / "cut.json.gz"
    result = fleetprof("analyze", str(tmp_path), "--trace-window", "7..8", "--ranks", "0-1", "--out", str(out))
    assert (result.returncode, result.stdout) == (0, f"{out}\n")
    found = import_trace(gzip.decompress(out.read_bytes()))
    assert len(found.named("ProfilerStep#7")) == 2
    assert result.stderr.splitlines()[:2] == [
        "fleetprof: iterations 7..8; ranks 0, 1; 66 events",
        "fleetprof: clocks: aligned by sequence numbers; a rank's end of a collective is 0 µs from the ranks' median "
        "end, 0 µs at most",
    ]


def test_without_a_name_it_is_written_here(fleetprof: Fleetprof, tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    result = fleetprof("analyze", str(tmp_path / "rank0.json"), "--trace-window", "all", cwd=tmp_path)
    assert result.stdout == "trace-window.json.gz\n"
    assert import_trace(gzip.decompress((tmp_path / "trace-window.json.gz").read_bytes())).slices


@pytest.mark.parametrize(
    ("out", "reason"),
    [("cut.json.gz", "No space left on device"), ("gone/cut.json.gz", "No such file or directory"),
     ("rank0.json/cut.json.gz", "Not a directory")],
)  # fmt: skip
def test_a_file_that_cannot_be_written_is_named(fleetprof: Fleetprof, tmp_path: Path, out: str, reason: str) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    (tmp_path / "cut.json.gz.part").symlink_to("/dev/full")
    result = fleetprof("analyze", str(tmp_path / "rank0.json"), "--trace-window", "all", "--out", str(tmp_path / out))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"fleetprof: cannot write {tmp_path / out}: {reason}\n"


def test_report_writes_a_cut_of_a_stored_capture(fleetprof: Fleetprof, state: StateDirectory, tmp_path: Path) -> None:
    store = DirectoryStore(state.default_store, b"s" * 32, "")
    capture = plant_capture(store, ranks=4, iterations=3, failed=(1,))
    out = tmp_path / "cut.json.gz"
    result = fleetprof("report", "demo", "--trace-window", "413", "--out", str(out))
    assert result.returncode == 0, result.stderr
    found = import_trace(gzip.decompress(out.read_bytes()))
    assert [one["rank"] for one in found.top_level["fleetprof"]["ranks"]] == [0, 2, 3]
    assert {name for name in found.processes.values() if name.startswith("rank 2")} == {
        "rank 2 analysis", "rank 2 CPU", "rank 2 GPU 0"
    }  # fmt: skip
    begin = {found.processes[one["pid"]]: one["start_ns"] for one in found.named("iteration 413")}
    base, offset = found.top_level["baseTimeNanoseconds"], found.top_level["fleetprof"]["ranks"][2]["offset_ns"]
    assert begin["rank 3 analysis"] + base == capture.traces[3].starts_ns[1] + offset
    # The same once more: nothing was written to the store, and the bytes are those of before.
    before = out.read_bytes()
    fleetprof("report", "demo", "--trace-window", "413", "--out", str(out))
    assert out.read_bytes() == before
    assert not [item.key for item in store.list("v1/") if "report" in item.key]


REFUSED = {
    "7..5": "must go from a lower to a higher iteration",
    "soon": "must be iterations (7 or 7..9), worst, all, a module (module:",
    "12": "there is no iteration 12: 7..10 are there",
}


@pytest.mark.parametrize("window", REFUSED)
def test_a_window_that_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["analyze", str(tmp_path), "--trace-window", window])
    assert result.exit_code == 2
    assert REFUSED[window] in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir() if "trace-window" in path.name] == []


WRONG = {
    ("--ranks", "0"): "--ranks chooses the ranks of --trace-window",
    ("--trace-window", "7", "-o", "json"): "--output is for reports",
    ("--trace-window", "7", "--out", "cut.json"): "a trace is written as *.json.gz",
    ("--trace-window", "7", "--ranks", "3"): "there is no trace of rank 3: there are rank 0",
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    result = CliRunner().invoke(main, ["analyze", str(tmp_path), *words])
    assert result.exit_code == 2
    assert WRONG[words] in " ".join(result.stderr.split())
