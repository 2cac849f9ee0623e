"""`fleetprof whatif`: an answer with its interval, or the reason why there is none."""

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_cli.local.state import StateDirectory
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import LoopShape, SimulatedFault

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


def test_a_stored_capture_is_found_by_its_name(fleetprof: Fleetprof, traces: Path, state: StateDirectory) -> None:
    store = state.path / "store"
    ledger = Ledger(uid="8a7b", name="first", namespace="default", completed_unix_ns=1)
    documents = {keys.ledger_key("default", "8a7b"): msgspec.json.encode(ledger)}
    for rank, trace in enumerate(sorted(traces.iterdir())):
        documents[keys.trace_key("default", "8a7b", rank)] = gzip.compress(trace.read_bytes())
    for key, document in documents.items():
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_bytes(document)
    stored, folder = (fleetprof("whatif", one, "--set", "network=2x", "-o", "json") for one in ("first", traces))
    assert stored.returncode == 0, stored.stderr
    assert json.loads(stored.stdout) == json.loads(folder.stdout)


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
