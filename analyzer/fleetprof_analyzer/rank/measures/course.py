"""The course of each iteration: of which class most of each moment was.

An overview shows with it when a rank computed, waited or loaded data, without a trace. Guarantees: pure; at most
`MOST_MOMENTS` bytes for a rank.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.report import Iteration

from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.trace import Int64s

MOST_MOMENTS: Final = 1024
COURSE_CLASSES: Final = (
    "idle",
    "compute",
    "communication_exposed",
    "communication_overlapped",
    "memory",
    "data_loading",
    "unrecorded",
)
_LOADING: Final = COURSE_CLASSES.index("data_loading")


def bound_moments(iterations: Sequence[Iteration]) -> Int64s:
    """The begins of each iteration's equal moments, and the end of the last; shape (iterations, moments + 1), ns."""
    moments = max(1, MOST_MOMENTS // max(1, len(iterations)))
    start = np.array([iteration.start_ns for iteration in iterations], np.int64)[:, None]
    duration = np.array([iteration.duration_ns for iteration in iterations], np.int64)[:, None]
    return start + duration * np.arange(moments + 1, dtype=np.int64) // moments


def describe_course(before: Int64s, bounds: Int64s, devices: int, labels: Sequence[Sequence[Label]]) -> bytes:
    """A number of `COURSE_CLASSES` for each moment of each iteration; empty without iterations.

    `before`: `breakdown.measure_before` at `bounds`, of so many devices. Idle moments in whose middle a label says data
    loading are data loading.
    """
    if bounds.size == 0:
        return b""
    compute, communication, either, busy, lost = np.diff(before, axis=2)
    overlapped = compute + communication - either
    length = np.diff(bounds, axis=1)
    idle = devices * length - busy - lost
    parts = (idle, compute - overlapped, either - compute, overlapped, busy - either, np.zeros_like(idle), lost)
    found = np.argmax(parts, axis=0)
    loading = [(start, end) for each in labels for start, end, stage in each if stage == "data_loading"]
    spans = np.array(loading, np.int64).reshape(len(loading), 2)
    middle = (bounds[:, :-1] + length // 2).ravel()
    loads = covered(middle, union(spans[:, 0], spans[:, 1])).reshape(found.shape)
    return np.where((found == 0) & loads, _LOADING, found).astype(np.uint8).tobytes()
