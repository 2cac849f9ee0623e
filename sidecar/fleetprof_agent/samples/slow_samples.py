"""Samples of the device outside a capture, from the hook: what the sidecar tells of this GPU as telemetry.

Guarantees: at most one every SLOW_SAMPLE_NS, and a four-thousandth of the time: a driver that answers slowly is asked
less often.
"""

from __future__ import annotations

import time

from fleetprof_agent.channel import Channel
from fleetprof_agent.samples.nvml import DeviceSampler

SLOW_SAMPLE_NS = 5_000_000_000
SLOW_SAMPLE_SHARE = 4_000


class SlowSamples:
    """The slow samples of one process; the first one is due SLOW_SAMPLE_NS after `now`."""

    def __init__(self, channel: Channel, sampler: DeviceSampler, now: int) -> None:
        self._channel = channel
        self._sampler = sampler
        self._next = now + SLOW_SAMPLE_NS

    def send_due(self, now: int, step: int) -> None:
        """Samples and sends when it is time to. `step`: optimizer steps so far."""
        if now < self._next:
            return
        began = time.perf_counter_ns()
        values = self._sampler.sample_health()
        cost = time.perf_counter_ns() - began
        self._next = now + max(SLOW_SAMPLE_NS, cost * SLOW_SAMPLE_SHARE)
        self._channel.send("telemetry", at_unix_ns=now, step=step, **values)
