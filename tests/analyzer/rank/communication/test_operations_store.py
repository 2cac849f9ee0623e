"""A rank's communication reaches the verdict with its summary, or beside it where it is too long for that."""

import numpy as np
import pytest
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_api import keys
from harness.memory_store import MemoryStore
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces import plant_capture
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of


def store_job() -> tuple[MemoryStore, str]:
    """A capture of four ranks whose rank 2 loads data slowly."""
    shape = JobShape(dp=4, layers=2, iterations=5)
    data = np.zeros((4, 5))
    data[2] = 4000
    store = MemoryStore()
    planted = plant_capture(store, ranks=4)
    for trace in traces_of(PlantedJob(shape, PlantedFault("data_loader", 2, data_us=data), 1), Clarity(), 1):
        rank = trace.metadata.rank or 0
        store.put(keys.trace_key("default", planted.uid, rank), json_of(trace).encode())
        store.delete([keys.samples_key("default", planted.uid, rank)])
    return store, planted.uid


@pytest.mark.parametrize("most_bytes", [32_000, 10], ids=["in the summary", "beside it"])
def test_map_and_merge_judge_as_one_pod_does(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    for module in ("rank.stored_summary", "capture.store"):
        monkeypatch.setattr(f"fleetprof_analyzer.{module}.MOST_OPERATIONS_BYTES", most_bytes)
    store, uid = store_job()
    for shard in range(2):
        summarise_ranks(store, "default", uid, shard=shard, shards=2)
    beside = [
        info.key for info in store.list(keys.request_prefix("default", uid)) if info.key.endswith("operations.bin")
    ]
    assert len(beside) == (0 if most_bytes > 10 else 4)
    merged = merge_capture(store, "default", uid).stragglers
    assert merged is not None
    assert [(one.rank, one.cause) for one in merged.ranks] == [(2, "data_loading")]
    assert merged == analyze_capture(store, "default", uid).stragglers


def test_operations_that_are_lost_beside_the_summary_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rank.stored_summary", "capture.store"):
        monkeypatch.setattr(f"fleetprof_analyzer.{module}.MOST_OPERATIONS_BYTES", 10)
    store, uid = store_job()
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    store.delete([keys.operations_key("default", uid, rank) for rank in (1, 2, 3)])
    found = merge_capture(store, "default", uid).stragglers
    assert found is not None
    assert (found.verdict, found.reason) == (
        "not_judged",
        "the operations of 3 ranks were not stored with their summaries",
    )
