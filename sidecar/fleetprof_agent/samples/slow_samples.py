"""Samples of the device outside a capture, from the hook.

Guarantees: at most one every SLOW_SAMPLE_NS, and a ten-thousandth of the time.
"""

from __future__ import annotations

import time

from fleetprof_agent.channel import Channel
from fleetprof_agent.samples.nvml import DeviceSampler, make_columns

SLOW_SAMPLE_NS = 10_000_000_000
SLOW_SAMPLE_SHARE = 10_000


class SlowSamples:
    """Of one process; the first one is due SLOW_SAMPLE_NS after `now`."""

    def __init__(self, channel: Channel, sampler: DeviceSampler, now: int) -> None:
        self._channel = channel
        self._sampler = sampler
        self._next = now + SLOW_SAMPLE_NS

    def send_due(self, now: int) -> None:
        """Samples and sends when it is time to."""
        if now < self._next:
            return
        began = time.perf_counter_ns()
        values = self._sampler.sample()
        cost = time.perf_counter_ns() - began
        self._next = now + max(SLOW_SAMPLE_NS, cost * SLOW_SAMPLE_SHARE)
        self._channel.send("device", capture="", **make_columns([{"at_unix_ns": now, **values}]))
