"""How the host launched device work: calls, delays, queues. (A naive twin: test_tables.py.)"""

import io
import json
from typing import Any

from fleetprof_analyzer.rank.iterations import Asked
from fleetprof_analyzer.rank.summary import summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report_tables import LaunchStatistics

US = 1000


def gpu(start: int, end: int, correlation: int | None = None) -> dict[str, Any]:
    said = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": 7, **said}}  # fmt: skip


def call(start: int, end: int, correlation: int, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start,
            "args": {"correlation": correlation}}  # fmt: skip


def measured(*events: dict[str, Any]) -> LaunchStatistics:
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())
    rank = summarise(trace, None, rank_number=0, asked=Asked(), problems=Problems()).rank
    assert rank is not None
    assert rank.launches is not None
    return rank.launches


def test_launches() -> None:
    found = measured(
        call(0, 5, 1), call(5, 9, 2), call(9, 2009, 3, "cudaGraphLaunch"),
        gpu(10, 12, 1), gpu(40, 100, 2), gpu(2010, 2020, 3), gpu(2020, 2030, 3), gpu(2030, 2031),
    )  # fmt: skip
    assert (found.launches, found.unlaunched, found.calls, found.slow_calls) == (4, 1, 3, 1)
    assert (found.call_p50_ns, found.call_p99_ns) == (5 * US, 2000 * US)
    assert (found.delay_p50_ns, found.delay_p99_ns) == (5 * US, 31 * US)
    # At the launches at 0, 5 and twice at 9 µs: 1, 2, 4 and 4 rows wait, their own included.
    assert (found.short, found.longest_queue, found.queue_p50, found.full_queue_ns) == (3, 4, 2, 0)


def test_a_queue_that_is_full_makes_the_next_call_wait() -> None:
    graph = [gpu(100 + number, 101 + number, 1) for number in range(1100)]
    found = measured(call(0, 5, 1, "cudaGraphLaunch"), *graph)
    # All 1,100 wait from 0 to 100 µs; the 77th begins at 176 µs, and leaves 1,023.
    assert (found.longest_queue, found.queue_p50, found.full_queue_ns) == (1100, 1100, 176 * US)
