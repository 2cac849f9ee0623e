"""Traces that hold device work and nothing else, to the microsecond as they are written."""

import json
from collections.abc import Sequence
from typing import Any

Launches = Sequence[tuple[str, int, int | str, int]]
"""Name, device, stream, duration in µs; one after the other."""

FAST, SLOW = [10, 12, 14, 12], [30, 34, 32]
"""Durations in µs of one kernel on two streams."""


def on(stream: int | str, lengths: Sequence[int], name: str = "gemm", device: int = 0) -> Launches:
    """Launches of one kernel on one stream."""
    return [(name, device, stream, length) for length in lengths]


def write_launches(launches: Launches) -> bytes:
    """The text of a trace."""
    events: list[dict[str, Any]] = []
    for name, device, stream, length in launches:
        start = 100 * len(events)
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": start,
                       "dur": length, "args": {"device": device, "stream": stream}})  # fmt: skip
    return json.dumps({"traceEvents": events}).encode()
