"""Other vendors' names of the host's calls into a device, and its work. Times in µs."""

import io
import json
from typing import Any

import pytest
from fleetprof_analyzer.rank.measures.breakdown import measure_device
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Category, Trace

# Ascend's profiler (torch_npu) writes a list, whose rows of the device carry no category.
PYTHON, CANN, DEVICE, COMMUNICATION, OVERLAP = 101, 102, 103, 104, 105
NAMES = {PYTHON: "Python", CANN: "CANN", DEVICE: "Ascend Hardware", COMMUNICATION: "Communication",
         OVERLAP: "Overlap Analysis"}  # fmt: skip
START = 1_700_000_000_000_000
Row = dict[str, Any]


def row(name: str, at: int, lasts: int, process: int, thread: int, **args: Any) -> Row:
    category = {"cat": "cpu_op"} if process == PYTHON else {}
    args = {name.replace("_", " ") if name != "connection_id" else name: value for name, value in args.items()}
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": f"{START + at}.000", "dur": lasts,
            "args": args, **category}  # fmt: skip


def task(name: str, at: int, lasts: int, kind: str, connection: int, stream: int = 2) -> Row:
    return row(name, at, lasts, DEVICE, stream, Task_Type=kind, Physic_Stream_Id=stream, connection_id=connection)


def read(rows: list[Row], *, in_object: bool = False) -> Trace:
    processes = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
                 for pid, name in NAMES.items()]  # fmt: skip
    events: Any = [*processes, *rows]
    document = {"traceEvents": events} if in_object else events
    return read_trace(io.BytesIO(json.dumps(document).encode()), "trace_view.json", Problems())


LOOP = [
    row("aten::mm", 0, 60, PYTHON, 7),
    row("Node@launch", 20, 30, CANN, 7, connection_id=1),
    task("aclnnMatmul_MatMulV2_MatMulV2", 100, 400, "AI_CORE", 1),
    task("aclnnAdd_Add_Add", 500, 100, "AI_VECTOR_CORE", 2),
    task("EVENT_WAIT", 600, 300, "EVENT_WAIT", 3),
    task("NOTIFY_RECORD", 610, 300, "NOTIFY_RECORD", 3),
    task("MEMCPY_ASYNC", 900, 50, "MEMCPY_ASYNC", 4, 3),
    row("hcom_allReduce__573_0_1", 950, 150, COMMUNICATION, 12, connection_id=5, count=100),
    row("Notify_Wait", 950, 100, COMMUNICATION, 13, task_type="Notify Wait"),
    row("Computing", 100, 500, OVERLAP, 1),
]


@pytest.mark.parametrize("in_object", [True, False])
@pytest.mark.parametrize("accelerated", [True, False])
def test_a_task_of_the_device_is_work_and_what_waits_or_repeats_others_is_none(
    monkeypatch: pytest.MonkeyPatch, accelerated: bool, in_object: bool
) -> None:
    if not accelerated:
        monkeypatch.setattr(scanning, "accelerator", lambda: None)
    trace = read(LOOP, in_object=in_object)
    found = [
        (trace.names[name], Category(kind)) for name, kind in zip(trace.rows.name, trace.rows.category, strict=True)
    ]
    assert found == [
        ("aten::mm", Category.OPERATOR),
        ("Node@launch", Category.RUNTIME),
        ("aclnnMatmul_MatMulV2_MatMulV2", Category.KERNEL),
        ("aclnnAdd_Add_Add", Category.KERNEL),
        ("MEMCPY_ASYNC", Category.MEMCPY),
        ("hcom_allReduce", Category.KERNEL),
    ]
    assert trace.time_origin == "unix"


def test_the_time_of_the_device_is_told_by_the_same_classes() -> None:
    (work,) = split_devices(read(LOOP))
    time = measure_device(work)
    assert [time.span, time.compute, time.exposed_communication, time.exposed_memory, time.idle] == [
        1000 * us for us in (1_000, 500, 150, 50, 300)
    ]


def test_a_call_of_cann_belongs_to_the_thread_that_ran_the_operator() -> None:
    trace = read(LOOP)
    rows = trace.rows
    assert (
        rows.place[rows.category == Category.RUNTIME].tolist()
        == rows.place[rows.category == Category.OPERATOR].tolist()
    )
    calls = find_calls(trace)
    kernel = rows.select(rows.category == Category.KERNEL).part(0, 1)
    assert trace.names[calls.calls.name[calls.of(kernel)[0]]] == "Node@launch"


@pytest.mark.parametrize(
    ("name", "args"),
    [("gemm", {"stream": 7}), ("gemm", {"Task Type": "AI_CORE"}), ("mail@host", {}), ("Node", {}), ("x", None)],
)
def test_rows_without_a_category_of_any_other_recorder_stay_unread(name: str, args: dict[str, Any] | None) -> None:
    assert len(read([{"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": args}]).rows) == 0


CALLS = (
    "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "xpu_driver", "privateuse1_runtime",
    "privateuse1_driver", "Runtime",
)  # fmt: skip


@pytest.mark.parametrize("category", CALLS)
def test_a_call_into_the_device_is_a_call(category: str) -> None:
    event = {"ph": "X", "cat": category, "name": "launch", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0, "args": {}}
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": [event]}).encode()), "r", Problems())
    assert trace.rows.category.tolist() == [Category.RUNTIME]
