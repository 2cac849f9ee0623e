"""The job of the agent's tests: a training loop, the marks of its trace, and the times that the agent sends."""

import json
from pathlib import Path
from typing import Any

TRAIN = """
model, optimizer = make()
while not is_stopped():
    iterate(model, optimizer)
"""


def read_marks(path: Path) -> list[tuple[float, float]]:
    """Begin and end (Unix ns) of each Optimizer.step mark of a trace, in order."""
    trace = json.loads(path.read_text())
    base = trace.get("baseTimeNanoseconds", 0)
    return sorted(
        (base + event["ts"] * 1000, base + (event["ts"] + event["dur"]) * 1000)
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("name", "").startswith("Optimizer.step#")
    )


def read_times(side: Any, capture: str) -> dict[int, int]:
    """Step → end (Unix ns), of all "times" messages of a capture so far."""
    return {
        step: end
        for message in list(side.messages)
        if message["t"] == "times" and message["capture"] == capture
        for step, end in zip(message["step"], message["end_unix_ns"], strict=True)
    }
