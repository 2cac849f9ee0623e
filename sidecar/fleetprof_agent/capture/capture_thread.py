"""The capture that this process is in, one at a time, and the thread that watches over it.

Guarantees: no thread outside a capture; commands are obeyed by the hook while there is no thread, and by the thread
while there is one, never by both; the thread's first error ends its watch, and reaches neither job nor sidecar.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from fleetprof_agent.capture.memory_guard import MemoryGuard
from fleetprof_agent.capture.watch import CaptureWatch, InvalidArm
from fleetprof_agent.channel import Channel
from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.process import identity
from fleetprof_agent.process.memory import ProcessMemory, give_back
from fleetprof_agent.profiler.kineto import OnDemandTrace
from fleetprof_agent.profiler.own_profile import OwnProfile
from fleetprof_agent.samples.nvml import DeviceSampler
from fleetprof_agent.samples.schedule import SchedulerFigures
from fleetprof_agent.samples.thread_samples import ThreadSamples
from fleetprof_agent.steps.reports import StepReports
from fleetprof_agent.steps.ring import StepRing

if TYPE_CHECKING:
    from fleetprof_agent.modules.marked_iteration import MarkedIteration

SECOND_NS = 1_000_000_000
LONGEST_SLEEP_S = 1.0
JOIN_S = 2.0
END_PATIENCE_S = 10.0  # for a trace whose window is over to be written, before a profile or the exit goes on
STEPS_TO_BEGIN = 3  # from the step at which Kineto may take up an order to a file that is open for sure
REST_S = 0.2  # how long a profile of the job's with stacks waits for our thread to end: it takes some ms
END_MARGIN_NS = SECOND_NS // 10  # Kineto ends a window by time a little early
# Of a thread itself: faulthandler is to show them.
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


class CaptureThread:
    """The captures of one process. `current_step()`: Kineto's count; `sampler`: of the device, or None.

    `follow(observe)` has a function called after each optimizer step, None: no more.
    """

    def __init__(
        self,
        channel: Channel,
        ring: StepRing,
        reports: StepReports,
        current_step: Callable[[], int],
        own: OwnProfile,
        trace: OnDemandTrace,
        memory: ProcessMemory,
        sampler: DeviceSampler | None,
        follow: Callable[[Any], None],
    ) -> None:
        self._channel = channel
        self._ring = ring
        self._reports = reports
        self._current_step = current_step
        self._own_profile = own
        self._trace = trace
        self._memory = memory
        self._sampler = sampler
        self._follow = follow
        self._watch: CaptureWatch | None = None
        self._thread: threading.Thread | None = None
        self._trainer = 0, 0
        self._has_ended = False

    def has_watch(self) -> bool:
        """Tells whether there is a capture, until the first `listen` after its end."""
        return self._watch is not None

    def listen(self, now: int, trainer: tuple[int, int]) -> None:
        """Obeys what has come, unless the thread does.

        `trainer`: the thread that steps the optimizer, its identity and its id at the kernel.
        """
        self._trainer = trainer
        if self._thread is not None and self._thread.is_alive():
            return
        if self._watch is not None and self._watch.is_over:
            self._watch = None
        for command in self._channel.receive():
            self._obey(command, now)
        self._start()

    def rest(self) -> None:
        """The thread ends, and the capture waits for `rise`; the job's profile records stacks."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self._channel.wake()
            thread.join(REST_S)

    def rise(self) -> None:
        """The capture goes on; not beside `listen`."""
        if self._thread is not None and not self._thread.is_alive():
            self._start()

    def await_trace(self) -> None:
        """A profile of the job's own is about to begin: it must not meet a trace that is being ended (kineto.py)."""
        if self._watch is not None:
            self._watch.stop_marking()
        if self._is_ending(self._watch):
            self._trace.await_completion(END_PATIENCE_S)

    def abandon(self) -> None:
        """In a forked child: the thread is the parent's."""
        watch, self._watch, self._thread = self._watch, None, None
        if watch is not None:
            watch.stop_looking()

    def end(self) -> str:
        """The interpreter ends: makes its exit safe, and sends what is left. The capture that was running, or ""."""
        self._has_ended = True
        watch, thread = self._watch, self._thread
        if thread is not None and thread.is_alive():
            self._channel.wake()
            thread.join(JOIN_S)
        running = watch if watch is not None and not watch.is_over else None
        is_armed = running is not None and running.is_armed
        self._trace.guard_exit(END_PATIENCE_S, is_armed=is_armed, is_ending=self._is_ending(watch))
        if running is None:
            return ""
        running.stop_looking()
        running.flush()
        return running.capture

    def _start(self) -> None:
        if self._watch is not None and not self._watch.is_over:
            self._thread = threading.Thread(target=self._run, name="fleetprof-capture", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            # The job's signals are for the job's threads: one that waits for a signal would miss what came here, and
            # one that it blocks in all its threads would end it.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
            while not self._has_ended and self._watch is not None:
                if self._own_profile.records_python:
                    return
                due = self._watch.tick(time.time_ns())
                if self._watch.is_over:
                    return
                wait = (due - time.time_ns()) / SECOND_NS
                self._channel.wait(min(max(wait, 0.0), LONGEST_SLEEP_S))
                for command in self._channel.receive():
                    self._obey(command, time.time_ns())
        except Exception as error:
            pass_on(error)
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.stop_looking()
            report_error()

    def _obey(self, command: dict[str, Any], now: int) -> None:
        kind, watch = command["t"], self._watch
        if kind == "query":
            self._reports.repeat()
        elif watch is not None and command.get("capture") == watch.capture:
            watch.obey(command, now)
        elif kind == "arm":
            self._begin_watch(command, command, now)
        elif kind == "cancel" and (watch is None or not watch.is_armed):
            # The order to watch was lost, or its watch is over: what Kineto holds can only be this capture's.
            arm = {**command, "until_unix_ns": now + 60 * SECOND_NS, "sample_interval_ns": 0}
            self._begin_watch(arm, command, now)

    def _begin_watch(self, arm: dict[str, Any], command: dict[str, Any], now: int) -> None:
        records = command["t"] == "arm"
        sampler, counters = self._sampler, arm.get("device_counters") is True
        sample = None
        if sampler is not None and command["t"] != "cancel":
            sample = lambda: sampler.sample(counters=counters)  # noqa: E731
        try:
            guard = MemoryGuard(arm, self._memory, give_back) if records else None
            thread = self._sample_thread(arm) if records else None
            modules = self._mark_modules(arm) if records else None
            drop = lambda: self._drop_trace(watch)  # noqa: E731
            watch: CaptureWatch = CaptureWatch(
                arm, now, self._ring, self._channel.send, sample, drop, guard, thread, modules
            )
        except InvalidArm:
            report_error()
            return
        if self._watch is not None:
            self._watch.stop_looking()
            self._watch.flush()
        watch.obey(command, now)
        self._watch = watch

    def _sample_thread(self, arm: dict[str, Any]) -> ThreadSamples | None:
        ident, task = self._trainer
        if arm.get("thread_samples") is not True or not ident:
            return None
        try:
            threads = identity.loaded("torch").get_num_threads()
            return ThreadSamples(arm, ident, SchedulerFigures(task, threads), self._reports.step_ns())
        except Exception as error:  # a capture without them
            pass_on(error)
            report_error()
            return None

    def _mark_modules(self, arm: dict[str, Any]) -> MarkedIteration | None:
        if arm.get("measured_step") is None:
            return None
        try:
            # No other capture needs it: a trainer does not load it at its start.
            from fleetprof_agent.modules.marked_iteration import mark_iteration

            return mark_iteration(arm, identity.loaded("torch"), self._current_step, self._follow)
        except Exception as error:  # a capture without them
            pass_on(error)
            report_error()
            return None

    def _drop_trace(self, watch: CaptureWatch) -> bool:
        step = self._current_step() - STEPS_TO_BEGIN
        is_due = step >= self._trace.free_since_step and watch.is_due(step)
        is_ending = self._is_ending(watch)
        if is_ending and self._trace.is_open():
            watch.tell_ending()
        return self._trace.drop(watch.capture, is_due=is_due, is_ending=is_ending, begins=watch.tell_dropping)

    def _is_ending(self, watch: CaptureWatch | None) -> bool:
        return watch is not None and watch.is_ending(time.time_ns() + END_MARGIN_NS, self._current_step())
