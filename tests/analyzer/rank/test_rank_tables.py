"""Work by class over all ranks, one rank's own longest kernels, and its waits for batches."""

import io
import json
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.measures.kernels.kernels import ALL, list_device_work, merge_classes
from fleetprof_analyzer.rank.summary import RankSummary, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems

US = 1000


def gpu(name: str, start: int, end: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": 7}}  # fmt: skip


def planted(*events: dict[str, Any]) -> RankSummary:
    problems = Problems()
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", problems)
    return summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=problems)


def test_classes_hold_all_names_of_all_ranks() -> None:
    one = planted(gpu("gemm", 0, 10), gpu("add", 20, 40), gpu("ncclDevKernel_AllReduce", 90, 100))
    other = planted(*[gpu(f"kernel_{number:03}", 10 * number, 10 * number + 1) for number in range(100)])
    compute, communication = merge_classes([one.kernels, other.kernels])
    assert (compute.name, compute.work_class, compute.count, compute.ranks) == (ALL, "compute", 102, 2)
    durations = [10, 20, *[1] * 100]
    assert (compute.total_ns, compute.max_ns) == (130 * US, 20 * US)
    assert compute.p50_ns == pytest.approx(US, rel=0.016)
    assert compute.deviation_ns == pytest.approx(US * float(np.std(durations)), abs=1)
    assert (communication.work_class, communication.count, communication.ranks) == ("communication", 1, 1)


def test_a_ranks_own_work_is_its_classes_and_its_longest_kernels() -> None:
    found = planted(*[gpu(f"kernel_{number:03}", 100 * number, 100 * number + 1 + number) for number in range(80)])
    classes, *longest = list_device_work(found.kernels)
    assert (classes.name, classes.count, classes.total_ns) == (ALL, 80, US * sum(range(1, 81)))
    assert [row.name for row in longest] == [f"kernel_{number:03}" for number in range(79, 71, -1)]
    assert classes.density == []
    assert {tuple(row.density) for row in longest} == {()}, "each ran once"
    assert list_device_work([]) == []


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        ([("enumerate(DataLoader)#_Iter.__next__", 0, 30, 1), ("enumerate(DataLoader)#_Iter.__next__", 50, 60, 1)], 40),
        ([("load_batch", 0, 30, 1), ("enumerate(DataLoader)#x", 10, 40, 2)], 40),  # at once: counted once
        ([("aten::mm", 0, 30, 1)], None),
        ([("enumerate(DataLoader)#x", 5, 5, 1)], 0),
    ],
)
def test_waits_for_batches(waits: list[tuple[str, int, int, int]], found: int | None) -> None:
    events = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": thread, "ts": start,
               "dur": end - start} for name, start, end, thread in waits]  # fmt: skip
    rank = planted(*events).rank
    assert rank is not None
    assert rank.data_loading_ns == (None if found is None else found * US)
