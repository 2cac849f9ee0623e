"""Calls of the host into its device are read whatever device it is: what the recorder of each calls them."""

import io
import json

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Category

CALLS = (
    "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "xpu_driver", "privateuse1_runtime",
    "privateuse1_driver", "Runtime",
)  # fmt: skip


@pytest.mark.parametrize("category", CALLS)
def test_a_call_into_the_device_is_a_call(category: str) -> None:
    event = {"ph": "X", "cat": category, "name": "launch", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0, "args": {}}
    trace = read_trace(io.BytesIO(json.dumps({"traceEvents": [event]}).encode()), "r", Problems())
    assert trace.rows.category.tolist() == [Category.RUNTIME]
