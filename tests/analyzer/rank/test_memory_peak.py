"""Peak memory: planted peaks, devices by name, rows that lack what newer ones say, a naive twin on real traces."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.rank.measures.memory_peak import measure_memory
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.rank_tables import MemoryPeak
from harness.reference.naive_events import load

US = 1000


def memory(
    at: Any, allocated: Any, reserved: Any = 0, *, device: Any = 0, kind: Any = 1, **more: Any
) -> dict[str, Any]:
    arguments = {"Total Reserved": reserved, "Total Allocated": allocated, "Bytes": 4, "Device Id": device,
            "Device Type": kind, "Addr": 1 << 40}  # fmt: skip
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
            "args": {key: value for key, value in arguments.items() if value is not None}}  # fmt: skip


OPERATOR = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 100}


def peaks(*events: dict[str, Any], **document: Any) -> list[MemoryPeak]:
    text = json.dumps({"traceEvents": [OPERATOR, *events], **document}).encode()
    return measure_memory(read_trace(io.BytesIO(text), "t", Problems()).memory)


def test_the_peak_of_each_device_and_when_it_was_first_reached() -> None:
    found = peaks(
        memory(10, 500, 1000), memory(20, 900, 1000), memory(30, 700, 2000), memory(40, 900, 2000),
        memory(15, 50, 60, device=1), memory(12, 7, device=-1, kind=0), memory(13, 3, device=-1, kind=0),
    )  # fmt: skip
    assert found == [
        MemoryPeak(device="cpu", allocated_bytes=7, allocated_at_ns=12 * US, first_allocated_bytes=7, events=2),
        MemoryPeak(device="cuda:0", allocated_bytes=900, allocated_at_ns=20 * US, reserved_bytes=2000,
                   reserved_at_ns=30 * US, first_allocated_bytes=500, events=4),
        MemoryPeak(device="cuda:1", allocated_bytes=50, allocated_at_ns=15 * US, reserved_bytes=60,
                   reserved_at_ns=15 * US, first_allocated_bytes=50, events=1),
    ]  # fmt: skip


def test_threads_write_out_of_order_and_time_counts_from_the_base() -> None:
    (found,) = peaks(memory(30, 900), memory(10, 900), memory(5, 1), baseTimeNanoseconds=7)
    assert (found.allocated_at_ns, found.first_allocated_bytes) == (10 * US + 7, 1)


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (memory(1, None, None), (None, None)),  # before PyTorch 1.12 only the bytes of the allocation are there
        (memory(1, "many", 1.5), (None, None)),
        (memory(1, -4, 1 << 70), (None, None)),
        (memory(1, 5, None), (5, None)),
        (memory(1, 0, 0), (0, None)),
    ],
)
def test_what_a_row_does_not_say_is_null(event: dict[str, Any], found: tuple[int | None, int | None]) -> None:
    (peak,) = peaks(event)
    assert (peak.allocated_bytes, peak.reserved_bytes, peak.events) == (*found, 1)


@pytest.mark.parametrize(
    ("kind", "number", "name"),
    [(0, -1, "cpu"), (1, 3, "cuda:3"), (6, 0, "hip:0"), (12, 1, "xpu:1"), (99, 0, "device type 99:0"),
     ("x", "y", "unknown"), (None, None, "unknown"), ([], {}, None)],
)  # fmt: skip
def test_devices_are_named_as_pytorch_names_them(kind: Any, number: Any, name: str | None) -> None:
    assert [peak.device for peak in peaks(memory(1, 5, kind=kind, device=number))] == ([name] if name else [])


def test_a_row_without_a_time_is_left_out_and_none_at_all_is_no_measure() -> None:
    assert peaks() == []
    assert peaks(memory("soon", 5)) == []


def test_memory_rows_count_against_the_limit_of_kept_rows() -> None:
    text = json.dumps({"traceEvents": [memory(at, at) for at in range(30)]}).encode()
    with pytest.raises(LimitExceeded, match="20 rows"):
        read_trace(io.BytesIO(text), "t", Problems(), TraceLimits(kept_rows=20))


@pytest.mark.parametrize(
    ("file", "devices"),
    [("inference_h100_mi300/mi300_falconsai.json.gz", {"hip:0"}),
     ("inference_h100_mi300/h100_falconsai.json.gz", {"cpu", "cuda:0"}),
     ("resnet50_v100_old/worker0.1623143089861.pt.trace.json.gz", {"cpu", "cuda:0"})],
)  # fmt: skip
def test_a_naive_twin_agrees_on_real_traces(shared_traces: Path, file: str, devices: set[str]) -> None:
    document = load(shared_traces / file)
    events = document["traceEvents"] if isinstance(document, dict) else document
    base = int(document.get("baseTimeNanoseconds", 0)) if isinstance(document, dict) else 0
    instants = [e for e in events if e.get("name") == "[memory]"]
    with (shared_traces / file).open("rb") as stream:
        trace = read_trace(stream, "t", Problems())
    found = measure_memory(trace.memory)
    assert {peak.device for peak in found} == devices
    assert sum(peak.events for peak in found) == len(instants)
    for peak in found:
        mine = [e for e in instants if (e["args"]["Device Type"] == 0) == (peak.device == "cpu")]
        totals = [e["args"].get("Total Allocated") for e in mine]
        if None in totals:
            assert peak.allocated_bytes is None
            continue
        assert peak.allocated_bytes == max(totals)
        first = min(Decimal(e["ts"]) for e in mine if e["args"]["Total Allocated"] == max(totals))
        absolute = first >= 10**15
        assert peak.allocated_at_ns == int(first * 1000) + (0 if absolute else base)
        assert (peak.reserved_bytes or 0) == max(e["args"]["Total Reserved"] for e in mine)
