"""The predictions in a stored report are the answers of `fleetprof whatif`."""

from pathlib import Path

import msgspec
import pytest
from fleetprof_analyzer.capture.replayed import predictions
from fleetprof_analyzer.capture.replayed.reading import read_folder
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.prediction import Predictions
from harness.memory_store import MemoryStore

TRACES = Path(__file__).parents[2] / "data" / "traces"


def analyze(name: str, *, damaged: int | None = None) -> Predictions:
    store = MemoryStore()
    for file in sorted((TRACES / name).glob("rank*.json.gz")):
        store.put(keys.trace_key("a", "b", int(file.name[4:-8])), file.read_bytes())
    if damaged is not None:
        store.put(keys.trace_key("a", "b", damaged), b"no trace")
    store.put(keys.ledger_key("a", "b"), msgspec.json.encode(Ledger(uid="b", name="b", namespace="a")))
    made = analyze_capture(store, "a", "b").predictions
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("traces", "answered"),
    [
        ("gpu_slow_rank", {"network=2x", "ranks=8", "without-straggler=2", "loader=0", "graph=all"}),
        ("four_ranks", {"network=2x", "loader=0"}),
        ("gpu_loop", {"loader=0", "graph=all"}),
    ],
)
def test_each_scenario_is_the_answer_of_whatif(traces: str, answered: set[str]) -> None:
    made = analyze(traces)
    job = read_folder(TRACES / traces)
    for one in made.scenarios:
        answer = predict(job, one.edits, read_edits(one.edits))
        assert msgspec.structs.replace(answer, quality=None) == one
        assert answer.quality == made.quality
    assert answered <= {one.edits[0] for one in made.scenarios if len(one.edits) == 1 and not one.refused}


def test_network_and_ranks_are_predicted_together() -> None:
    pairs = [one.edits for one in analyze("gpu_slow_rank").scenarios if len(one.edits) == 2]
    assert ["network=2x", "ranks=8"] in pairs


def test_a_change_that_cannot_be_told_has_its_reason_once() -> None:
    refused = [one for one in analyze("gpu_loop").scenarios if one.refused]
    assert [one.edits[0].partition("=")[0] for one in refused] == ["network", "ranks"]


def test_without_all_traces_nothing_is_predicted() -> None:
    assert analyze("gpu_slow_rank", damaged=1).refused


def test_many_events_are_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "MOST_EVENTS", 10)
    assert "too many" in analyze("gpu_loop").refused
