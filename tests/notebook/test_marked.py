"""A trace for other readers has no iteration with marks of modules."""

import json

from fleetprof.marked import leave_out_marked

ROW = '{"ph": "X", "cat": "%s", "name": "%s", "pid": 1, "tid": 1, "ts": 1790857026000%03d.125, "dur": 4.0%s}'


def row(category: str, name: str, begin: int, correlation: int | None = None) -> str:
    args = "" if correlation is None else f', "args": {{"correlation": {correlation}}}'
    return ROW % (category, name, begin, args)


def trace(*rows: str) -> bytes:
    meta = '{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}'
    return (
        '{{"distributedInfo": {{"rank": 3}}, "traceEvents": [{}], "traceName": "t"}}'.format(", ".join([meta, *rows]))
    ).encode()


def test_what_began_or_was_launched_later_is_left_out_and_the_rest_is_as_it_was() -> None:
    early = [
        row("cpu_op", "aten::mm", 10),
        row("cuda_runtime", "cudaLaunchKernel", 11, 1),
        row("kernel", "gemm", 90, 1),
    ]
    late = [
        row("cpu_op", "fleetprof.marks begin", 50), row("cpu_op", "fleetprof.module:0 Net", 51),
        row("cuda_runtime", "cudaLaunchKernel", 52, 2), row("kernel", "gemm", 95, 2), row("ac2g", "ac2g", 52),
    ]  # fmt: skip
    found = leave_out_marked(trace(*early, *late))
    assert json.loads(found) == json.loads(trace(*early))
    assert all(one.encode() in found for one in early)


def test_a_trace_without_marks_is_the_same() -> None:
    text = trace(row("cpu_op", "aten::mm", 10), row("cpu_op", "fleetprof.modules of the job", 12))
    assert leave_out_marked(text) is text
