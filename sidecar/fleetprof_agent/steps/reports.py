"""The reports to the sidecar on the process and its steps, outside a capture as well: "hello" and "steps".

Guarantees: at most one report every REPORT_EVERY_S once it is known how long an iteration takes; a hello that could
not be sent goes with the next report.
"""

from __future__ import annotations

import os
from typing import Any

from fleetprof_agent import wire
from fleetprof_agent.channel import Channel
from fleetprof_agent.process import identity
from fleetprof_agent.process.memory import ProcessMemory
from fleetprof_agent.steps.hook import LISTEN_NS
from fleetprof_agent.steps.ring import MASK, StepRing, find_period

REPORT_NS = int(wire.REPORT_EVERY_S * 1_000_000_000)
HELLO_NS = int(wire.HELLO_EVERY_S * 1_000_000_000)


class StepReports:
    """The reports of one process. `hello`: the fields of that message, without the ranks."""

    def __init__(self, channel: Channel, ring: StepRing, memory: ProcessMemory, hello: dict[str, Any]) -> None:
        self._channel = channel
        self._ring = ring
        self._memory = memory
        self._hello = hello
        self._next_report = 0
        self._next_hello = 0
        self._per_iteration = 0  # not known
        self._headroom_bytes = 0

    def step_ns(self) -> int:
        """The time of an optimizer step; 0: not known."""
        per_iteration = self._per_iteration
        return self._ring.iteration_ns(per_iteration) // per_iteration if per_iteration else 0

    def repeat(self) -> None:
        """Somebody asked: both messages go with the next step."""
        self._next_hello = self._next_report = 0

    def send_hello(self) -> bool:
        """Says now who this process is; False when that could not be sent."""
        ranks = identity.read_ranks(dict(os.environ), identity.loaded("torch.distributed"))
        return self._channel.send("hello", **self._hello, **ranks)

    def send_due(self, now: int, own_profile: str) -> None:
        """Sends what is due. `own_profile`: what the job's own profiler is at."""
        if now >= self._next_report or now < self._next_report - REPORT_NS:
            self._send(now, own_profile)

    def _send(self, now: int, own_profile: str) -> None:
        if now >= self._next_hello or now < self._next_hello - HELLO_NS:
            if self.send_hello():
                self._next_hello = now + HELLO_NS
            self._headroom_bytes = self._memory.headroom_bytes()
        ring = self._ring
        self._per_iteration = per_iteration = find_period(ring.latest_optimizers(), self._per_iteration)
        iteration_ns = ring.iteration_ns(per_iteration) if per_iteration else 0
        # A capture can only begin with a step once it is known how long one takes.
        self._next_report = now + (REPORT_NS if iteration_ns else LISTEN_NS)
        last = (ring.count - 1) & MASK
        self._channel.send(
            "steps",
            step=ring.step[last],
            at_unix_ns=ring.end_unix_ns[last],
            iteration_ns=iteration_ns,
            fastest_iteration_ns=ring.fastest_iteration_ns(per_iteration) if per_iteration else 0,
            per_iteration=max(per_iteration, 1),
            headroom_bytes=self._headroom_bytes,
            own_profile=own_profile,
        )
