"""`fleetprof whatif`: an answer with its interval, or the reason why there is none."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import RequestInfo, write_report
from fleetprof_cli.local.state import StateDirectory
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import DynamicShapes, LoopShape, SimulatedFault

Fleetprof = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    job = EventJob(LoopShape(loop="replicated", dp=2, layers=2, iterations=4), SimulatedFault(), 3)
    for rank, document in enumerate(job.documents()):
        (folder / f"rank{rank}.json").write_bytes(document)
    return folder


def test_json_has_the_answer_its_interval_and_what_it_rests_on(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", traces, "--set", "faster:sm90_gemm=2x", "-o", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    interval = answer["iteration_ns"]
    assert interval["low"] < interval["value"] < interval["high"] < answer["quality"]["recorded_ns"]
    assert answer["edits"] == ["faster:sm90_gemm=2x"]
    assert answer["rests_on"]


def test_the_text_says_the_same_in_words(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", traces, "--set", "network=2x")
    assert result.returncode == 0, result.stderr
    assert "The replay of 3 iteration(s) on 2 rank(s)" in result.stdout
    assert "With network=2x: an iteration takes" in result.stdout
    assert "Rests on" in result.stdout


def test_cannot_say_is_an_answer(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", traces, "--set", "without-straggler=7")
    assert result.returncode == 0, result.stderr
    assert "Cannot say: rank 7 is not in this capture." in result.stdout


def test_what_cannot_be_set_is_refused_with_what_can(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", traces, "--set", "device=H100")
    assert result.returncode == 2
    assert "network=2x" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("",), 5, "there is no capture"),  # an unset variable of a shell, not the current folder
        ((f"x@{'9' * 5000}",), 5, "there is no capture"),
        (("--backtest", "--set", "loader=0"), 2, "--backtest goes with no --set"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    fleetprof: Fleetprof, words: tuple[str, ...], code: int, reason: str
) -> None:
    result = fleetprof("whatif", *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert reason in result.stderr


def test_traces_without_work_are_refused(fleetprof: Fleetprof, tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text('{"traceEvents": []}')
    assert fleetprof("whatif", tmp_path).returncode == 2


def test_a_batch_size_is_predicted_from_captures_at_two(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", f"{traces}@8", f"{traces}@16", "--set", "batch_size=12", "-o", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["change"] == pytest.approx(0, abs=0.01)
    assert answer["iteration_ns"]["low"] <= answer["iteration_ns"]["value"]


def test_a_capture_whose_size_nothing_says_is_refused(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", traces, f"{traces}@16", "--set", "batch_size=12")
    assert result.returncode == 2
    assert f"{traces}@8" in result.stderr


def test_a_history_is_checked_against_what_came(fleetprof: Fleetprof, traces: Path) -> None:
    result = fleetprof("whatif", f"{traces}@8", f"{traces}@16", f"{traces}@12", "--backtest")
    assert result.returncode == 0, result.stderr
    assert "1 prediction(s), median error 0.0 %, 100 % inside the interval; 2 capture(s)" in result.stdout


def keep(
    state: StateDirectory, uid: str, traces: Path, number: int, target: str = "", samples: int | None = None
) -> None:
    """A capture of these traces in the state's store, with a report where its job is named."""
    ledger = Ledger(uid=uid, name=f"capture-{uid}", namespace="default", submitted_unix_ns=number)
    documents = {keys.ledger_key("default", uid): msgspec.json.encode(ledger)}
    for rank, trace in enumerate(sorted(traces.glob("*.json"))):
        documents[keys.trace_key("default", uid, rank)] = gzip.compress(trace.read_bytes())
    if target:
        request = RequestInfo(uid=uid, namespace="default", target=target)
        report = analyze_directory(traces)
        ranks = [msgspec.structs.replace(one, samples_per_iteration=samples) for one in report.ranks]
        report = msgspec.structs.replace(report, request=request, ranks=ranks)
        documents[keys.report_key("default", uid)] = write_report(report)
    for key, document in documents.items():
        file = state.path / "store" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(document)


def test_a_stored_capture_is_found_by_its_name(fleetprof: Fleetprof, traces: Path, state: StateDirectory) -> None:
    keep(state, "8a7b", traces, 1)
    names = ("capture-8a7b", traces)
    stored, folder = (fleetprof("whatif", one, "--set", "network=2x", "-o", "json") for one in names)
    assert stored.returncode == 0, stored.stderr
    assert json.loads(stored.stdout) == json.loads(folder.stdout)


def test_one_stored_capture_with_shapes_has_the_size_of_its_label(
    fleetprof: Fleetprof, state: StateDirectory, tmp_path: Path
) -> None:
    shaped = LoopShape(
        loop="replicated", dp=2, layers=2, iterations=4, dynamic=DynamicShapes(spread=0, says_inputs=True)
    )
    for rank, document in enumerate(EventJob(shaped, SimulatedFault(), 3).documents()):
        (tmp_path / f"rank{rank}.json").write_bytes(document)
    keep(state, "bb01", tmp_path, 1, "train", samples=4096)
    result = fleetprof("whatif", "latest", "--set", "batch_size=8192", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["change"] > 0.5


def test_predictions_over_a_store_are_kept(
    fleetprof: Fleetprof, traces: Path, state: StateDirectory, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    shape = LoopShape(loop="replicated", dp=4, layers=2, iterations=4, per_node=1)
    for rank, document in enumerate(EventJob(shape, SimulatedFault(), 3).documents()):
        (more / f"rank{rank}.json").write_bytes(document)
    few = tmp_path / "few"
    few.mkdir()
    for rank, document in enumerate(EventJob(replace(shape, dp=2), SimulatedFault(), 3).documents()):
        (few / f"rank{rank}.json").write_bytes(document)
    keep(state, "aa01", few, 1, "train")
    keep(state, "aa02", few, 2, "train")
    keep(state, "aa03", traces, 3, "other")
    keep(state, "aa04", more, 4, "train")
    found = fleetprof("whatif", "--backtest", "-o", "json")
    assert found.returncode == 0, found.stderr
    [checked] = json.loads(found.stdout)["predictions"]
    assert (checked["before"], checked["capture"], checked["settings"]) == ("aa02", "aa04", ["ranks=4"])
    assert abs(checked["error"]) < 0.04
    shutil.rmtree(state.path / "store" / keys.request_prefix("default", "aa02"))
    again = fleetprof("whatif", "--backtest")
    assert "default/train aa04, ranks=4" in again.stdout
    assert "1 prediction(s)" in again.stdout


def test_more_ranks_with_the_batch_that_each_has_are_foretold_by_a_replay(
    fleetprof: Fleetprof, state: StateDirectory, tmp_path: Path
) -> None:
    shape = LoopShape(loop="replicated", dp=2, layers=2, iterations=4, per_node=1)
    shapes = {"small": replace(shape, kernel_us=40), "few": shape, "more": replace(shape, dp=4)}
    for number, (name, one) in enumerate(shapes.items()):
        folder = tmp_path / name
        folder.mkdir()
        for rank, document in enumerate(EventJob(one, SimulatedFault(), 3).documents()):
            (folder / f"rank{rank}.json").write_bytes(document)
        keep(state, f"aa0{number}", folder, number + 1, "train", samples=8 << number)
    found = fleetprof("whatif", "--backtest", "-o", "json")
    assert found.returncode == 0, found.stderr
    [checked] = json.loads(found.stdout)["predictions"]
    assert (checked["capture"], checked["settings"]) == ("aa02", ["ranks=4"])
    assert abs(checked["error"]) < 0.04


def test_each_scenario_of_a_file_gets_a_line(fleetprof: Fleetprof, traces: Path, tmp_path: Path) -> None:
    (tmp_path / "scenarios.yaml").write_text("faster: [network=2x, loader=0]\nalone: without-straggler=7\n")
    result = fleetprof("whatif", traces, "--scenarios", tmp_path / "scenarios.yaml")
    assert result.returncode == 0, result.stderr
    faster, alone = result.stdout.splitlines()
    assert faster.startswith("faster")
    assert "throughput +" in faster
    assert alone == "alone   cannot say: rank 7 is not in this capture"


@pytest.mark.parametrize("text", ["- network=2x", "a: {b: c}", "a: [network]", "", "a: 'x"])
def test_what_is_no_list_of_scenarios_is_refused(fleetprof: Fleetprof, traces: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "scenarios.yaml").write_text(text)
    assert fleetprof("whatif", traces, "--scenarios", tmp_path / "scenarios.yaml").returncode == 2
