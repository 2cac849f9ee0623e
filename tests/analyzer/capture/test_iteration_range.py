"""`spec.iteration.range`: a range of the job's own bounds iterations, in the report and in summaries made elsewhere."""

import gzip
import json
from pathlib import Path

import msgspec
from fleetprof_analyzer.capture.rank_summary import make_summary
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import read_report
from harness.memory_store import MemoryStore

CALLS = [
    {"ph": "X", "cat": "user_annotation", "name": "execute_model", "pid": 1, "tid": 1, "ts": at * 1000, "dur": 5000}
    for at in (0, 10, 30)
]
TRACE = gzip.compress(json.dumps({"traceEvents": CALLS}).encode())
REQUEST = {
    "metadata": {"name": "server"},
    "spec": {
        "target": {"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "server"}},
        "window": {"durationMillis": 2000},
        "iteration": {"range": "execute_model"},
    },
}


def report_of(store: MemoryStore) -> list[int]:
    """The lengths of the iterations of its only rank, ns."""
    store.put(keys.request_key("team", "u"), json.dumps(REQUEST).encode())
    ledger = Ledger(uid="u", name="server", namespace="team", start_mode="time", start_unix_ns=1)
    store.put(keys.ledger_key("team", "u"), msgspec.json.encode(ledger))
    analyze_capture(store, "team", "u")
    (rank,) = read_report(store.get(keys.report_key("team", "u"))).ranks
    return [iteration.duration_ns for iteration in rank.iterations]


def test_the_report_of_a_request_has_iterations_by_its_range() -> None:
    store = MemoryStore()
    store.put(keys.trace_key("team", "u", 0), TRACE)
    assert report_of(store) == [10_000_000, 20_000_000]


def test_a_summary_beside_the_trainer_has_them_too(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json.gz"
    trace.write_bytes(TRACE)
    store = MemoryStore()
    summary = make_summary(
        trace, None, rank=0, first_step=None, iterations=None, memory_bytes=None, iteration_range="execute_model"
    )
    store.put(keys.summary_key("team", "u", 0), summary)
    assert report_of(store) == [10_000_000, 20_000_000]
