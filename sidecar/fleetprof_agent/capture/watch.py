"""The agent's part in one capture, apart from how it is run: a state machine with time passed in.

    arm ──▶ watching ──done──▶ after-window ──▶ over        cancel, or `until` reached ──▶ over

Guarantees: each row of step ends is sent once it can be sent, oldest first; nothing is sampled faster than asked or
after the end; a watch ends by itself at `until_unix_ns`, whatever the sidecar does; a recording that would leave the
job too little memory is dropped (memory_guard.py). Called from one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from fleetprof_agent.capture.memory_guard import MemoryGuard
from fleetprof_agent.errors import AgentError
from fleetprof_agent.samples.nvml import make_columns
from fleetprof_agent.samples.thread_samples import ThreadSamples
from fleetprof_agent.steps.ring import MASK, StepRing

if TYPE_CHECKING:
    from fleetprof_agent.modules.marked_iteration import MarkedIteration

SECOND_NS = 1_000_000_000
STEPS_BEFORE = 512  # rows sent from before the order
STEPS_PER_CHUNK = 800  # 31 bytes each: below 32 KiB
SAMPLES_PER_CHUNK = 96
MOST_SAMPLES = 10 * SAMPLES_PER_CHUNK
FLUSH_NS = SECOND_NS
MIN_SAMPLE_INTERVAL_NS = 10_000_000
LONGEST_WATCH_NS = 3600 * SECOND_NS
LONGEST_AFTER_NS = 60 * SECOND_NS
# Twice: Kineto may be about to take an order that was on its way when we dropped what it held (it waits up to 90 ms for
# an answer to a poll). Also how often it is tried again while the job's own profiler stands in the way.
CANCEL_DROPS = 2
DROP_INTERVAL_NS = SECOND_NS // 5
LAST_FLUSH_NS = 2 * SECOND_NS  # how long the last rows wait for a sidecar that does not read

Send = Callable[..., bool]
Sample = Callable[[], "dict[str, int | None] | None"]


class InvalidArm(AgentError, ValueError):
    """An "arm" command with a field missing or out of range."""


class CaptureWatch:
    """One capture. `send(kind, **fields)` sends a datagram, `sample()` reads the device; `drop_trace()`: kineto.py.

    `guard` watches the recording's memory; None where nothing is recorded, only dropped. `thread` looks at the training
    thread, `modules` marks them; None where nobody asked.
    """

    def __init__(
        self,
        arm: dict[str, Any],
        now: int,
        ring: StepRing,
        send: Send,
        sample: Sample | None,
        drop_trace: Callable[[], bool],
        guard: MemoryGuard | None = None,
        thread: ThreadSamples | None = None,
        modules: MarkedIteration | None = None,
    ) -> None:
        """Raises InvalidArm."""
        self.capture = _text(arm, "capture")
        self.until = min(_integer(arm, "until_unix_ns"), now + LONGEST_WATCH_NS)
        self._first_step, self._last_step = arm.get("first_step"), arm.get("last_step")
        self._end = arm.get("end_unix_ns")
        self.is_armed = True  # until the sidecar says that the trace is written, or it has been dropped
        self.is_over = False
        self._ring = ring
        self._send = send
        self._sample = sample
        self._drop_trace = drop_trace
        self._guard = guard
        self._thread = thread
        self._modules = modules
        self._sample_interval = max(_integer(arm, "sample_interval_ns"), MIN_SAMPLE_INTERVAL_NS)
        self._next_row = max(0, ring.count - STEPS_BEFORE)
        self._next_sample = now
        self._next_flush = now + FLUSH_NS
        self._samples: list[dict[str, int | None]] = []
        self._drops_left = 0
        self._next_drop = 0
        self._is_ending_told = False
        self._give_up = 0  # once the end is reached: when to stop trying to send what is left

    def obey(self, command: dict[str, Any], now: int) -> None:
        """Takes "arm" (the first and its repetitions), "cancel" or "done" for this capture."""
        kind = command["t"]
        if kind == "arm":
            self._send("armed", capture=self.capture)
        elif kind == "cancel":
            if not self._drops_left:
                self._drops_left, self._next_drop = CANCEL_DROPS, now
        elif kind == "done":
            self.is_armed = False
            after = command.get("after_ns")
            after = after if isinstance(after, int) and after > 0 else 0
            self.until = now + min(after, LONGEST_AFTER_NS)

    def is_due(self, step: int) -> bool:
        """Tells whether Kineto must have begun by this step, if it has the order at all."""
        return type(self._first_step) is int and step >= self._first_step

    def is_ending(self, now: int, step: int) -> bool:
        """Tells whether the window is over and its trace may not be written yet; `step`: the latest one."""
        if not self.is_armed:
            return False
        by_step = type(self._last_step) is int and step >= self._last_step
        return by_step or (type(self._end) is int and now >= self._end)

    def tick(self, now: int) -> int:
        """Does what is due; returns when to be called again at the latest (Unix ns)."""
        self._look_at_memory(now)
        if self._drops_left and now >= self._next_drop:
            self._next_drop = now + DROP_INTERVAL_NS
            if self._drop_trace():
                self._drops_left -= 1
                if not self._drops_left:
                    self.is_armed = False
                    self.is_over = True
                    self.stop_looking()
                    self._send("cancelled", capture=self.capture)
                    self._look_at_memory(now)
                    return now
        if now >= self.until:
            return self._finish(now)
        if self._sample is not None and now >= self._next_sample:
            self._add_sample(now)
            self._next_sample = max(self._next_sample + self._sample_interval, now + self._sample_interval // 2)
        if self._thread is not None:
            self._thread.tick(now, self._latest_step())
        if now >= self._next_flush:
            self.flush()
            self._next_flush = now + FLUSH_NS
        due = min(self._next_flush, self.until)
        if self._sample is not None:
            due = min(due, self._next_sample)
        if self._guard is not None:
            due = min(due, self._guard.due)
        if self._thread is not None and not self._thread.is_over:
            due = min(due, self._thread.due)
        return min(due, self._next_drop) if self._drops_left else due

    def tell_dropping(self) -> None:
        """The recording is being dropped, which may take long: who waits for "cancelled" hears that it will come."""
        self._send("dropping", capture=self.capture)

    def tell_ending(self) -> None:
        """The window of a cancelled recording is over: it is left to end, and the sidecar to discard it."""
        if not self._is_ending_told:
            self._is_ending_told = self._send("ending", capture=self.capture)

    def flush(self) -> bool:
        """Sends what has gathered; False when something is left that could not be sent."""
        while self._samples:
            chunk = self._samples[:SAMPLES_PER_CHUNK]
            if not self._send("device", capture=self.capture, **make_columns(chunk)):
                return False
            del self._samples[: len(chunk)]
        while self._next_row < self._ring.count:
            after, steps, ends = self._ring.read(self._next_row, STEPS_PER_CHUNK)
            if not self._send("times", capture=self.capture, step=steps, end_unix_ns=ends):
                return False
            self._next_row = after
        if self._thread is not None and self._thread.is_over and not self._thread.flush(self._send_of_capture):
            return False
        return self._modules is None or self._modules.flush(self._send_of_capture)

    def stop_looking(self) -> None:
        """Looks at the training thread no more, and marks no modules; what was seen is sent with the next flush."""
        if self._thread is not None:
            self._thread.end()
        self.stop_marking()

    def stop_marking(self) -> None:
        """Marks no modules any more."""
        if self._modules is not None:
            self._modules.stop()

    def _send_of_capture(self, kind: str, **fields: Any) -> bool:
        return self._send(kind, capture=self.capture, **fields)

    def _latest_step(self) -> int:
        return self._ring.step[(self._ring.count - 1) & MASK]

    def _look_at_memory(self, now: int) -> None:
        guard = self._guard
        if guard is None:
            return
        if not self.is_armed:  # written or dropped
            self._guard = None
            if guard.has_begun:
                self._send("memory", capture=self.capture, **guard.finish())
        elif now >= guard.due and guard.look(now, self._latest_step()):
            self._send("short", capture=self.capture, **guard.shortage)
            # One that is not recording yet the sidecar takes back: it knows whether Kineto has it.
            if guard.has_begun and not self._drops_left:
                self._drops_left, self._next_drop = CANCEL_DROPS, now

    def _finish(self, now: int) -> int:
        if not self._give_up:
            self._give_up = now + LAST_FLUSH_NS
            self.stop_looking()
        self.is_over = self.flush() or now >= self._give_up
        return now + SECOND_NS // 20

    def _add_sample(self, now: int) -> None:
        values = self._sample() if self._sample is not None else None
        if values is None:
            self._sample = None
            return
        self._samples.append({"at_unix_ns": now, **values})
        if len(self._samples) > MOST_SAMPLES:  # nobody listens: memory stays bounded
            del self._samples[0]


def _integer(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value < 2**63:
        raise InvalidArm("%s: must be an integer of 0 or more" % name)
    return value


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        raise InvalidArm("%s: must be a text of 1 to 64 characters" % name)
    return value
