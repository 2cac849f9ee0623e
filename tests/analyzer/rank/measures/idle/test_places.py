"""The places of idle time: the work at both ends of the gaps, their streams, the operators, the line of code."""

import io
import json
from typing import Any

from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_api.report.report_tables import IdlePlace
from fleetprof_api.samples import CodePlace, RankSamples, ThreadColumns

US = 1000
BEGIN_NS = 1_700_000_000_000_000_000
MAIN = 1


def gpu(name: str, start: int, end: int, number: int, stream: int = 7) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": stream, "correlation": number}}  # fmt: skip


def host(name: str, start: int, end: int, *, category: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": MAIN, "ts": start, "dur": end - start,
            "args": args}  # fmt: skip


def launch(at: int, number: int) -> dict[str, Any]:
    return host("cudaLaunchKernel", at, at + 5, category="cuda_runtime", correlation=number)


def read(events: list[dict[str, Any]]) -> Trace:
    document = {"baseTimeNanoseconds": BEGIN_NS, "traceEvents": events}
    return read_trace(io.BytesIO(json.dumps(document).encode()), "t", Problems())


def find(events: list[dict[str, Any]], samples: RankSamples | None = None) -> list[IdlePlace]:
    found = summarise(read(events), samples, rank_number=0, terms=RecordingTerms(), problems=Problems())
    assert found.rank is not None
    return found.rank.idle_places


# gemm to 100, then the host is in Python until an operator launches relu on another stream at 400.
SILENT = [
    gpu("gemm", 0, 100, 1), gpu("relu", 410, 500, 2, stream=9),
    host("aten::linear", -30, -5), host("aten::mm", -20, -8), launch(-15, 1),
    host("aten::relu_", 380, 420), host("aten::clamp_min", 390, 415), launch(400, 2),
]  # fmt: skip


def test_python_between_operators() -> None:
    (place,) = [one for one in find(SILENT) if one.kind == "python"]
    assert place == IdlePlace(
        kind="python", time_ns=280 * US, count=1, after_work="gemm", after_stream="7", before_work="relu",
        before_stream="9", operator="aten::clamp_min", after="aten::linear", before="aten::relu_",
        start_ns=BEGIN_NS + 100 * US, duration_ns=310 * US,
    )  # fmt: skip


def test_a_trace_without_operators_still_names_the_work_at_both_ends() -> None:
    """Work that was launched long before waits for another stream or rank."""
    events = [gpu("gemm", 0, 100, 1), gpu("nccl", 400, 500, 2, stream=20), launch(-20, 1), launch(-10, 2)]
    assert find(events) == [
        IdlePlace(kind="waiting", time_ns=300 * US, count=1, after_work="gemm", after_stream="7", before_work="nccl",
                  before_stream="20", start_ns=BEGIN_NS + 100 * US, duration_ns=300 * US)
    ]  # fmt: skip


def test_the_pair_with_most_of_the_time_is_named_and_not_the_longest_gap() -> None:
    events = [gpu("start", -100, 0, 1), launch(-200, 1)]
    at = 0
    for number in range(2, 12):
        often = number != 5
        length = 100 if often else 400
        name = "often" if often else "once"
        events += [gpu(name, at + length, at + length + 50, number), launch(-150, number)]
        at += length + 50
    (place,) = find(events)
    assert (place.after_work, place.before_work, place.count, place.time_ns) == ("often", "often", 7, 700 * US)


def test_little_idle_time_has_no_place() -> None:
    assert find([gpu("a", 0, 100_000, 1), gpu("b", 101_000, 200_000, 2), launch(-9, 1), launch(-8, 2)]) == []


def test_of_work_that_begins_together_the_one_launched_first_ends_the_gap() -> None:
    events = [gpu("a", 0, 100, 1), gpu("late", 400, 500, 2), gpu("early", 400, 450, 3, stream=8), launch(-40, 1),
              launch(-20, 2), launch(-30, 3)]  # fmt: skip
    assert [(one.before_work, one.before_stream) for one in find(events)] == [("early", "8")]


def test_the_line_is_where_the_training_thread_was_in_the_gaps() -> None:
    samples = RankSamples(
        rank=0,
        thread=ThreadColumns(at_unix_ns=[BEGIN_NS + at * US for at in range(0, 500, 10)],
                             stack=[0 if 100 <= at < 400 else 1 for at in range(0, 500, 10)]),
        places=[CodePlace(file="t.py", function="log", line=9), CodePlace(file="t.py", function="main", line=4)],
        stacks=[[0, 1], [1]],
    )  # fmt: skip
    (place,) = [one for one in find(SILENT, samples) if one.kind == "python"]
    assert place.place is not None
    assert (place.place.function, place.place.line) == ("log", 9)


def test_frames_of_the_trace_tell_the_line_where_threads_were_not_sampled() -> None:
    frames = [
        {"ph": "X", "cat": "python_function", "name": f"train.py({line}): {name}", "pid": 1, "tid": MAIN, "ts": start,
         "dur": end - start, "args": {}}
        for name, line, start, end in (("main", 4, -40, 600), ("log", 9, 90, 395))
    ]  # fmt: skip
    (place,) = [one for one in find([*SILENT, *frames]) if one.kind == "python"]
    assert place.place is not None
    assert (place.place.function, place.place.samples) == ("log", 0)
