"""With the accelerator and without it a trace is the same, to the last number; what is irregular it does not take."""

import io
import json
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.columns.columns import RowCollector
from fleetprof_analyzer.reading.event import AS_EVENTS, AS_TEXT, REFUSALS
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import COLUMNS, Trace
from harness.reference.mutated_traces import mutate
from harness.traces.kept_traces import COMMITTED, SHARED
from harness.traces.planted.traces import plant

CASES = int(os.environ.get("FLEETPROF_FUZZ_CASES", "200"))
_LARGE_BYTES = 900_000


@pytest.fixture(autouse=True)
def _needs_it() -> None:
    if scanning.accelerator() is None:
        reason = "fleetprof-accelerator is not installed, or was built without a C compiler"
        if "accelerator" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)


def facts(trace: Trace) -> dict[str, Any]:
    """All that a trace holds, comparable."""
    found = {
        name: getattr(trace, name) for name in Trace.__dataclass_fields__ if name not in ("rows", "frames", "memory")
    }
    rows = {name: getattr(trace.rows, name).tolist() for name in COLUMNS}
    rows |= {f"frames {name}": getattr(trace.frames, name).tolist() for name in COLUMNS}
    memory = {name: list(getattr(trace.memory, name)) for name in trace.memory.__dataclass_fields__}
    return found | rows | {f"memory {name}": values for name, values in memory.items()}


def read_both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, int]:
    """The trace with the accelerator, without it, and the number of its blocks."""
    answers: list[Any] = []
    taken = 0
    take = scanning.Scanner.take

    def counted(self: scanning.Scanner, text: bytes, length: int, *, is_bare: bool) -> bool:
        nonlocal taken
        took = take(self, text, length, is_bare=is_bare)
        taken += took
        return took

    for with_it in (True, False):
        problems = Problems()
        with monkeypatch.context() as patch:
            patch.setattr(scanning.Scanner, "take", counted)
            if not with_it:
                patch.setattr(scanning, "accelerator", lambda: None)
            try:
                answers.append((facts(read_trace(io.BytesIO(data), "t", problems)), problems.entries("t", None)))
            except LimitExceeded as error:
                answers.append(str(error))
    return *answers, taken


def real_traces() -> list[Any]:
    return [
        pytest.param(file, id=file.relative_to(folder).as_posix())
        for folder in (COMMITTED, SHARED)
        for file in sorted(folder.rglob("*.json*"))
        if file.stat().st_size < _LARGE_BYTES
    ]


@pytest.mark.parametrize("file", real_traces())
def test_a_real_trace_is_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, reference, _ = read_both(file.read_bytes(), monkeypatch)
    assert ours == reference


@pytest.mark.parametrize("indent", [None, 1])
def test_a_regular_trace_is_taken_whole(indent: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plant(3, iterations=2, segments=3, trace_id="demo-r3").text(indent).encode()
    ours, reference, taken = read_both(text, monkeypatch)
    assert ours == reference
    assert taken == 1
    assert len(ours[0]["start_ns"]) > 50


def test_damaged_traces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(plant(0, iterations=3, segments=3).text(), parse_float=Decimal)
    for seed in range(CASES):
        ours, reference, _ = read_both(mutate(seed, document), monkeypatch)
        assert ours == reference, seed


def test_what_it_takes_is_numbered_after_what_was_decoded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def block(thread: int, duration: str) -> list[str]:
        row = f'{{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": {thread}, "ts": 5.000, "dur": {duration}}}'
        return [row] * (800_000 // len(row))

    text = ",".join(block(7, '"1.000"') + block(8, "1.000"))  # it takes no durations that are texts
    ours, reference, taken = read_both(f"[{text}]".encode(), monkeypatch)
    assert ours == reference
    assert ours[0]["places"] == [("1", "7"), ("1", "8")]
    assert taken == 1


ROWS = [
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 12, "tid": 34, "ts": 4458676522690.655, "dur": 156.777, '
    '"args": {"External id": 2049,"Record function id": 0, "Sequence number": 1080, "Fwd thread id": 1, "Ev Idx": 0}}',
    '{"ph": "X", "cat": "kernel", "name": "void k<float, 2>(int)", "pid": 0, "tid": 7, "ts": 100, "dur": 4.96, "args": '
    '{"External id": 7, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 57541, '
    '"blocks per SM": 4.740741e-1, "grid": [512, 1, 1], "block": [512, 1, 1], "est. achieved occupancy %": 100}}',
    '{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 200, "dur": 4, "args": '
    '{"device": 0, "stream": "0x0", "Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float", '
    '"Process Group Ranks": "[0, 1]", "Seq": 3, "correlation": 9}}',
    '{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 12, "tid": 34, "ts": 7, "dur": 1.5, "args": '
    '{"External id": 9, "Input Dims": [[512], [32, 512], [], [[4], [5, 6]]], "Input type": ["float"]}}',
    '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":12,"tid":34,"ts":98,"dur":1,'
    '"args":{"cbid":211,"correlation":57541}}',
    '{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 90.5, "dur": 0.96, "args": '
    '{"device": 0, "stream": 7, "correlation": 9, "bytes": 4000, "memory bandwidth (GB/s)": 0.78616}}',
    '{"ph": "X", "cat": "python_function", "name": "gc.py(3): collect", "pid": 12, "tid": 34, "ts": 1, "dur": 2, '
    '"args": {"Python parent id": null, "Python id": 1, "Ev Idx": 9}}',
    '{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 12, "tid": 35, "ts": 1, "dur": 2, "args": '
    '{"External id": 9, "Input Dims": [[2, 3], []], "Input type": ["float", ""]}}',
    '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 12, "tid": 34, "ts": 4.5, "args": '
    '{"Total Reserved": 10, "Total Allocated": 4, "Bytes": -4, "Addr": 12, "Device Id": 0, "Device Type": 1}}',
    '{"ph": "i", "s": "t", "name": "Record Window End", "pid": "", "tid": "", "ts": 300}',
    '{"ph": "s", "id": 246, "pid": 12, "tid": 34, "ts": 1, "cat": "ac2g", "name": "ac2g"}',
    '{"name": "process_name", "ph": "M", "ts": 0, "pid": 0, "tid": 0, "args": {"name": "python\\\\x"}}',
    '{"ph": "X", "cat": "Trace", "ts": 2, "dur": 2, "pid": "Spans", "tid": "P", "name": "P (0)", "args": {"N": 0}}',
]
PIECES = ['"', "\\", *"{}[],:-.0 \n", "\x01", "é", "1e9", "1.5", "null", "true", "name"]


def taken_block(text: bytes) -> dict[str, Any] | None:
    columns = RowCollector(Problems(), TraceLimits())
    scanner = scanning.make_scanner(columns)
    assert scanner is not None
    taken = scanner.take(text, len(text))
    scanner.hand_over()
    return content(columns) if taken else None


def content(columns: RowCollector) -> dict[str, Any]:
    words = columns.vocabulary
    rows, memory = columns.rows(), columns.memory.rows(0)
    return {
        "names": list(words.names), "places": list(words.places.places), "shapes": list(words.shapes),
        "inputs": words.inputs.found, "collectives": list(words.collectives), "events": columns.event_count,
        "end": columns.window_end_ns,
        "memory": [list(getattr(memory, name)) for name in memory.__dataclass_fields__],
        "operators": columns.recorded_permille(),
        **{name: getattr(rows, name).tolist() for name in COLUMNS},
    }  # fmt: skip


def decoded_block(text: bytes) -> dict[str, Any] | None:
    try:
        events = [AS_EVENTS.one(event) for event in AS_TEXT.batch(b"[" + text + b"]")]
    except REFUSALS:
        return None
    columns = RowCollector(Problems(), TraceLimits())
    columns.add(events)
    return content(columns)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_each_kind_is_taken_as_it_is_decoded(row: str) -> None:
    assert taken_block(row.encode()) == decoded_block(row.encode()) is not None


@pytest.mark.parametrize("value", [
    "[]", "[[]]", "[[2, 3], [], [[4], [5, 6]]]", "[ [2,3] ]", "[[0, 5]]", "[[-1]]", "[[2, -3]]", "[[1.0]]", "[[1e2]]",
    "[[true]]", "[[null]]", '[["4"]]', "[[[[4]]]]", "[[4], 5]", "[4]", "4", "null", '"[[4]]"', '{"a": [4]}',
    "[[4611686018427387903]]", "[[4611686018427387904]]", "[[2305843009213693952, 2]]", "[[18446744073709551616]]",
    f"[[{'9' * 400}]]", f"[[{'9' * 4000}]]", f"{'[' * 31}4{']' * 31}", f"{'[' * 2000}4{']' * 2000}",
    f"[{', '.join(['[4]'] * 817)}]", f"[{', '.join(['[4]'] * 900)}]", "[[4]", "[[4,]]", "[[04]]",
], ids=lambda value: value[:20])  # fmt: skip
def test_dimensions_of_any_kind_are_not_taken_or_as_they_are_decoded(value: str) -> None:
    row = f'{{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "dur": 2, "args": {{"Input Dims": {value}}}}}'
    text = ", ".join([row, ROWS[0], row]).encode()
    assert (found := taken_block(text)) is None or found == decoded_block(text)


@pytest.mark.parametrize("value", ["true", "[1]", "{}", "null", '"4.96"', "4.9612", "1e2", "999999999999.1234"])
@pytest.mark.parametrize("key", ["ts", "dur"])
def test_a_time_of_any_kind_is_not_taken_or_as_it_is_decoded(key: str, value: str) -> None:
    for row in (ROWS[0], ROWS[-1]):
        text = json.dumps(json.loads(row) | {key: "?"}).replace('"?"', value).encode()
        assert (found := taken_block(text)) is None or found == decoded_block(text)


def test_whatever_byte_is_wrong_a_block_is_not_taken_or_as_it_is_decoded() -> None:
    make, taken = random.Random(7), 0
    for case in range(50 * CASES):
        block = ", ".join(make.sample(ROWS, 3))
        for _ in range(make.choice([1, 1, 2, 4])):
            at = make.randrange(len(block))
            block = block[:at] + make.choice([make.choice(PIECES), ""]) + block[at + make.choice([0, 0, 1, 5]) :]
        text = block.encode()
        found = taken_block(text)
        if found is not None:
            taken += 1
            assert found == decoded_block(text), (case, block)
    assert taken > 2 * CASES


def test_a_block_cut_anywhere_is_not_read_beyond_its_end() -> None:
    text = ", ".join(ROWS).encode()
    columns = RowCollector(Problems(), TraceLimits())
    scanner = scanning.make_scanner(columns)
    assert scanner is not None
    borders = [at for at in range(1, len(text)) if decoded_block(text[:at]) is not None]
    assert [at for at in range(1, len(text)) if scanner.take(text, at)] == borders


def test_limits_hold() -> None:
    text = ", ".join(ROWS).encode()
    for limits in (TraceLimits(events=3), TraceLimits(kept_rows=3), TraceLimits(name_bytes=9)):
        scanner = scanning.make_scanner(RowCollector(Problems(), limits))
        assert scanner is not None
        with pytest.raises(LimitExceeded):
            scanner.take(text, len(text))
