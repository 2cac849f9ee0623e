"""A profiler in a trainer, as planning knows it: how early its orders must be there."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerFacts:
    """`name`, and what lies between an order and the window that it begins."""

    name: str
    steps_before_first: int  # from the step that it is told to the first that it records whole
    warmup_ns: int  # before a window by time, where there may be a device
    delivery_margin_ns: int  # before that warm-up


KINETO: Final = ProfilerFacts(
    name="kineto",
    steps_before_first=2,
    warmup_ns=2 * 10**9,  # CUPTI takes seconds to start
    delivery_margin_ns=1500 * 10**6,
)
"""Kineto begins inside the hook of the step after the one that it is told, and looks once a second whether a start time
is near; it refuses one that is nearer than its warm-up then (measured: an order 0.95 s before that is never in time,
1.1 s not always, 1.3 s is; PyTorch 2.13 and 2.15; libkineto's AsyncActivityProfilerHandler).
"""
