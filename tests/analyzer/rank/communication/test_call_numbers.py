"""Numbers of calls tell when a lost one was made, where they rise with time."""

import io
import json
from collections.abc import Sequence

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.numbers import calls_around
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems

BASE_US = 1_790_857_026_000_000
RISING = list(range(10, 30, 2))


def around(numbers: Sequence[int], name: str, number: int) -> tuple[int, int] | None:
    """Starts of the calls before and behind the number, µs; one call every 10 µs."""
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": BASE_US + 10 * at, "dur": 5,
         "args": {"correlation": one}}
        for at, one in enumerate(numbers)
    ]  # fmt: skip
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems())
    found = calls_around(trace.rows, np.array([number]))
    if found is None:
        return None
    before, behind = int(found.before_ns[0]), int(found.behind_ns[0])
    return before // 1000 - BASE_US, behind // 1000 - BASE_US


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "hipLaunchKernel", "zeCommandListAppendLaunchKernel"])
def test_a_lost_call_lies_between_its_neighbours(name: str) -> None:
    assert around(RISING, name, 15) == (20, 30)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(RISING[:7], id="too few"),
        pytest.param(RISING[::-1], id="falling"),
        pytest.param([*RISING[5:], *RISING[:5]], id="two recordings, or a counter that began anew"),
    ],
)
def test_numbers_that_do_not_rise_tell_nothing(numbers: list[int]) -> None:
    assert around(numbers, "cudaLaunchKernel", 15) is None
