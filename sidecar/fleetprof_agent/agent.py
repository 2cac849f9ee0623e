"""The agent in a trainer: an optimizer hook, and for the length of a capture a thread.

Guarantees, in the order in which they matter: no exception of ours reaches the training, and the first one ends the
agent; a step costs a clock reading, three list writes and two comparisons (bench/agent_hook.py measures it), and once
a second a datagram; nothing waits; no thread outside a capture; a forked child is silent and does nothing; the
interpreter's exit while Kineto is at work is made safe (kineto.py). A process that makes no step says once that the
agent is there (half a millisecond, when PyTorch has been imported), removes its socket at its exit, and nothing else.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from typing import Any, Callable

from fleetprof_agent import wire
from fleetprof_agent.capture.memory_guard import MemoryGuard
from fleetprof_agent.capture.watch import CaptureWatch, InvalidArm, make_columns
from fleetprof_agent.channel import Channel
from fleetprof_agent.errors import report_error
from fleetprof_agent.process import identity
from fleetprof_agent.process.memory import ProcessMemory, give_back
from fleetprof_agent.profiler import kineto, own_profile
from fleetprof_agent.samples import nvml
from fleetprof_agent.samples.schedule import Schedule
from fleetprof_agent.samples.thread_samples import ThreadSamples
from fleetprof_agent.steps.ring import MASK, StepRing, find_period

SECOND_NS = 1_000_000_000
LISTEN_NS = SECOND_NS // 4  # how long a command waits at most, if steps are shorter
REPORT_NS = int(wire.REPORT_EVERY_S * SECOND_NS)
HELLO_NS = int(wire.HELLO_EVERY_S * SECOND_NS)
# Outside a capture the device is sampled from the hook, and may take a ten-thousandth of the time there.
SLOW_SAMPLE_NS = 10 * SECOND_NS
SLOW_SAMPLE_SHARE = 10_000
LONGEST_SLEEP_S = 1.0
JOIN_S = 2.0
END_PATIENCE_S = 10.0  # for a trace whose window is over to be written, before a profile or the exit goes on
STEPS_TO_BEGIN = 3  # from the step at which Kineto may take up an order to a file that is open for sure
REST_S = 0.2  # how long a profile of the job's with stacks waits for our thread to end: it takes some ms
END_MARGIN_NS = SECOND_NS // 10  # Kineto ends a window by time a little early
# Of a thread itself: faulthandler is to show them.
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}

Hook = Callable[[Any, Any, Any], None]


def start(take: Callable[[], Channel | None]) -> None:
    """Registers the optimizer hook; torch.profiler has just been imported. Raises what goes wrong. Once per process.

    `take` hands over the socket that said that PyTorch was being imported; None when nothing was said.
    """
    global _agent
    if _agent is not None:
        return
    directory = os.environ.get("KINETO_IPC_SOCKET_DIR", "")
    optimizer = identity.loaded("torch.optim.optimizer")
    profiler = identity.loaded("torch.autograd.profiler")
    own = own_profile.OwnProfile()
    own.observe(profiler)
    _agent = Agent(directory, profiler.KinetoStepTracker, own)
    hook = _agent.make_hook()
    handle = optimizer.register_optimizer_step_post_hook(hook)
    _agent.place_hook = lambda what: _place(optimizer, handle, what or hook)
    os.register_at_fork(after_in_child=_agent.abandon)
    kineto.keep_forked_exits_short()
    _agent.announce(take)


_agent: Agent | None = None


def _ignore_step(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
    """Stands where the hook was."""


# The same, and seen by no profiler: that shows functions, Python's and C's, and a type is neither.
_REST: Any = slice


def _place(optimizer: Any, handle: Any, hook: Hook) -> None:
    # Not removed: PyTorch may be iterating over its hooks at this moment, and a dict that shrinks then would raise
    # in the training. One that the job removed, or that was given up, stays so.
    hooks = optimizer._global_optimizer_post_hooks
    if hooks.get(handle.id, _ignore_step) is not _ignore_step:
        hooks[handle.id] = hook


class Agent:
    """The agent of one process; `tracker` is torch.autograd.profiler.KinetoStepTracker."""

    def __init__(self, directory: str, tracker: Any, own: own_profile.OwnProfile) -> None:
        self.place_hook: Callable[[Any], None] = lambda what: None  # None: the agent's own
        self._own_profile = own
        own.changed = self._tell_own_profile
        version = str(getattr(identity.loaded("torch"), "__version__", ""))
        self._trace = kineto.OnDemandTrace(version, own)
        self._directory = directory
        self._tracker = tracker
        self._ring = StepRing()
        self._started_unix_ns = time.time_ns()
        self._serving = threading.Lock()
        self._is_alive = True
        self._is_serving = False  # from the first step on
        self._next_service = 0
        self._next_report = 0
        self._next_hello = 0
        self._next_slow_sample = 0
        self._idle_step = 0  # the last one at which the job's own profile had Kineto
        self._per_iteration = 1
        self._channel: Channel | None = None
        self._hello: dict[str, Any] = {}
        self._sampler: nvml.DeviceSampler | None = None
        self._memory: ProcessMemory | None = None
        self._headroom_bytes = 0
        self._watch: CaptureWatch | None = None
        self._thread: threading.Thread | None = None
        self._trainer = 0, 0  # the thread that steps the optimizer: its identity, and its id at the kernel

    def announce(self, take: Callable[[], Channel | None]) -> None:
        """Says, before the first step, that there is an agent in this process: a request may wait for it then."""
        kineto_socket = identity.find_kineto_socket(self._directory)
        channel = take()
        if not kineto_socket:
            if channel is not None:
                channel.close()
            return  # no orders reach this process
        self._channel = channel or Channel(self._directory)
        atexit.register(self._leave)
        known = {**identity.describe_process(identity.loaded("torch")), **identity.read_ranks(dict(os.environ), None)}
        self._channel.send(
            "hello", **known, role=wire.WAITING, kineto=kineto_socket, started_unix_ns=self._started_unix_ns
        )

    def make_hook(self) -> Hook:
        """The hook for register_optimizer_step_post_hook; PyTorch calls it after Kineto has counted the step."""
        ring, current_step, time_ns = self._ring, self._tracker.current_step, time.time_ns
        column_step, column_end, column_optimizer = ring.step, ring.end_unix_ns, ring.optimizer

        def record_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            try:
                now = time_ns()
                row = ring.count
                slot = row & MASK
                column_step[slot] = current_step()
                column_end[slot] = now
                column_optimizer[slot] = id(optimizer)
                ring.count = row + 1
                if now >= self._next_service or now < self._next_service - LISTEN_NS:  # or the clock was set back
                    self._serve(optimizer, now)
            except Exception:
                report_error()
                self._give_up()

        # torch.compile must neither trace this function nor guard on what it touches.
        record_step._torchdynamo_disable = True  # type: ignore[attr-defined]
        return record_step

    def abandon(self) -> None:
        """Called in a forked child: the socket, the captures and the exit are the parent's.

        Other threads of the parent may have held any lock at the fork: no lock is taken, nothing loaded or looked up.
        """
        self._is_alive = False
        watch, self._watch, self._thread = self._watch, None, None
        self._own_profile.abandon()
        channel, self._channel = self._channel, None
        try:
            self.place_hook(_ignore_step)
            if watch is not None:
                watch.stop_looking()
            if channel is not None:
                channel.close()
        except Exception:
            report_error()

    def _serve(self, optimizer: Any, now: int) -> None:
        """Listens and reports; runs in the hook, at most every LISTEN_NS, in one thread at a time."""
        if not self._is_alive or not self._serving.acquire(blocking=False):
            return
        try:
            self._next_service = now + LISTEN_NS
            self._trainer = threading.get_ident(), threading.get_native_id()
            if self._tracker.current_step() < 1:
                return  # Kineto does not count in this process: it cannot be asked for steps
            if not self._is_serving:
                self._open(optimizer, now)
            if self._thread is None or not self._thread.is_alive():
                self._listen(now)
            if now >= self._next_report or now < self._next_report - REPORT_NS:
                self._report(now)
            if self._sampler is not None and self._watch is None and now >= self._next_slow_sample:
                self._sample_slowly(now)
        finally:
            self._serving.release()

    def _open(self, optimizer: Any, now: int) -> None:
        torch = identity.loaded("torch")
        device = identity.read_device(torch, optimizer)
        self._sampler = _open_sampler(device)
        self._memory = ProcessMemory()
        self._hello = {
            **identity.describe_process(torch),
            "role": wire.TRAINER,
            **{name: value for name, value in device.items() if name != "device_index"},
            "kineto": identity.find_kineto_socket(self._directory),
            "started_unix_ns": self._started_unix_ns,
        }
        self._own_profile.before_begin = self._await_end
        if self._channel is None:
            self._channel = Channel(self._directory)
        self._next_slow_sample = now + SLOW_SAMPLE_NS
        # Before the handlers that are registered already, PyTorch's among them.
        atexit.unregister(self._leave)
        atexit.register(self._leave)
        self._is_serving = True

    def _listen(self, now: int) -> None:
        channel = self._channel
        assert channel is not None
        if self._watch is not None and self._watch.is_over:
            self._watch = None
        for command in channel.receive():
            self._obey(command, now)
        self._start_thread()

    def _start_thread(self) -> None:
        if self._watch is not None and not self._watch.is_over:
            self._thread = threading.Thread(target=self._run_watch, name="fleetprof-capture", daemon=True)
            self._thread.start()

    def _obey(self, command: dict[str, Any], now: int) -> None:
        kind, watch = command["t"], self._watch
        if kind == "query":
            self._next_hello = self._next_report = 0
        elif watch is not None and command.get("capture") == watch.capture:
            watch.obey(command, now)
        elif kind == "arm":
            self._begin_watch(command, command, now)
        elif kind == "cancel" and (watch is None or not watch.is_armed):
            # The order to watch was lost, or its watch is over: what Kineto holds can only be this capture's.
            arm = {**command, "until_unix_ns": now + 60 * SECOND_NS, "sample_interval_ns": 0}
            self._begin_watch(arm, command, now)

    def _begin_watch(self, arm: dict[str, Any], command: dict[str, Any], now: int) -> None:
        channel = self._channel
        assert channel is not None
        sampler, counters = self._sampler, arm.get("device_counters") is True
        sample = None
        if sampler is not None and command["t"] != "cancel":
            sample = lambda: sampler.sample(counters=counters)  # noqa: E731
        try:
            records = command["t"] == "arm" and self._memory is not None
            guard = MemoryGuard(arm, self._memory, give_back) if records else None
            thread = self._sample_thread(arm) if command["t"] == "arm" else None
            watch: CaptureWatch = CaptureWatch(
                arm, now, self._ring, channel.send, sample, lambda: self._drop_trace(watch), guard, thread
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
            step_ns = self._ring.iteration_ns(self._per_iteration) // self._per_iteration
            return ThreadSamples(arm, ident, Schedule(task, threads), step_ns)
        except Exception:  # a capture without them
            report_error()
            return None

    def _drop_trace(self, watch: CaptureWatch) -> bool:
        step = self._tracker.current_step() - STEPS_TO_BEGIN
        is_due = step >= self._idle_step and watch.is_due(step)
        is_ending = self._is_ending(watch)
        if is_ending and self._trace.is_open():
            watch.tell_ending()
        return self._trace.drop(watch.capture, is_due=is_due, is_ending=is_ending, begins=watch.tell_dropping)

    def _is_ending(self, watch: CaptureWatch | None) -> bool:
        return watch is not None and watch.is_ending(time.time_ns() + END_MARGIN_NS, self._tracker.current_step())

    def _await_end(self) -> None:
        """A profile of the job's own is about to begin: it must not meet a trace that is being ended (kineto.py)."""
        if self._is_ending(self._watch):
            self._trace.await_completion(END_PATIENCE_S)

    def _tell_own_profile(self, phase: str) -> None:
        """The job's own profile has begun or ended, in the job's thread."""
        if phase == own_profile.WARMUP:
            self._trace.note_own_profile()
        if phase == own_profile.IDLE:
            self._idle_step = self._tracker.current_step()
        channel = self._channel
        if channel is not None and self._is_serving and self._is_alive:
            channel.send("profile", own_profile=phase)
        self._rest_or_rise()

    def _rest_or_rise(self) -> None:
        """Nothing of ours runs, in no thread, while the job's profile records stacks; the steps of then are unknown."""
        rests, thread, channel = self._own_profile.records_python, self._thread, self._channel
        self.place_hook(_REST if rests else None)
        if thread is None or channel is None:
            return
        if rests and thread.is_alive():
            channel.wake()
            thread.join(REST_S)
        elif not rests and self._is_alive and self._serving.acquire(blocking=False):
            try:
                if not thread.is_alive():
                    self._start_thread()
            finally:
                self._serving.release()

    def _report(self, now: int) -> None:
        channel = self._channel
        assert channel is not None
        if now >= self._next_hello or now < self._next_hello - HELLO_NS:
            ranks = identity.read_ranks(dict(os.environ), identity.loaded("torch.distributed"))
            if channel.send("hello", **self._hello, **ranks):
                self._next_hello = now + HELLO_NS
            self._headroom_bytes = self._memory.headroom_bytes() if self._memory is not None else 0
        ring = self._ring
        self._per_iteration = find_period(ring.latest_optimizers(), self._per_iteration)
        iteration_ns = ring.iteration_ns(self._per_iteration)
        # A capture can only begin with a step once it is known how long one takes.
        self._next_report = now + (REPORT_NS if iteration_ns else LISTEN_NS)
        last = (ring.count - 1) & MASK
        channel.send(
            "steps",
            step=ring.step[last],
            at_unix_ns=ring.end_unix_ns[last],
            iteration_ns=iteration_ns,
            fastest_iteration_ns=ring.fastest_iteration_ns(self._per_iteration),
            per_iteration=self._per_iteration,
            headroom_bytes=self._headroom_bytes,
            own_profile=self._own_profile.phase,
        )

    def _sample_slowly(self, now: int) -> None:
        sampler, channel = self._sampler, self._channel
        assert sampler is not None
        assert channel is not None
        began = time.perf_counter_ns()
        values = sampler.sample()
        cost = time.perf_counter_ns() - began
        self._next_slow_sample = now + max(SLOW_SAMPLE_NS, cost * SLOW_SAMPLE_SHARE)
        channel.send("device", capture="", **make_columns([{"at_unix_ns": now, **values}]))

    def _run_watch(self) -> None:
        """The capture's thread."""
        try:
            # The job's signals are for the job's threads: one that waits for a signal would miss what came here, and
            # one that it blocks in all its threads would end it.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
            channel = self._channel
            while self._is_alive and self._watch is not None and channel is not None:
                if self._own_profile.records_python:
                    return
                due = self._watch.tick(time.time_ns())
                if self._watch.is_over:
                    return
                wait = (due - time.time_ns()) / SECOND_NS
                channel.wait(min(max(wait, 0.0), LONGEST_SLEEP_S))
                for command in channel.receive():
                    self._obey(command, time.time_ns())
        except Exception:
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.stop_looking()
            report_error()

    def _leave(self) -> None:
        """The exit of the interpreter, in the orderly way."""
        try:
            if not self._is_alive:
                return
            self._is_alive = False
            channel, watch, thread = self._channel, self._watch, self._thread
            if channel is None:
                return
            if not self._is_serving:
                channel.close()
                return
            if thread is not None and thread.is_alive():
                channel.wake()
                thread.join(JOIN_S)
            is_watched = watch is not None and not watch.is_over
            is_armed = is_watched and watch is not None and watch.is_armed
            self._trace.guard_exit(END_PATIENCE_S, is_armed=is_armed, is_ending=self._is_ending(watch))
            if is_watched and watch is not None:
                watch.stop_looking()
                watch.flush()
            channel.send("bye", capture=watch.capture if is_watched and watch is not None else "", reason="exit")
            channel.close()
        except Exception:
            report_error()

    def _give_up(self) -> None:
        """After an error of ours: no step is looked at any more; only the exit is still guarded."""
        try:
            self.place_hook(_ignore_step)
            channel = self._channel
            if channel is not None and not self._is_serving:
                channel.close()  # nobody is to wait for the first step's word
        except Exception:
            report_error()


def _open_sampler(device: dict[str, Any]) -> nvml.DeviceSampler | None:
    # In the first step, which is slow in any job: loading NVML takes tens of milliseconds.
    if device["device_kind"] != "cuda":
        return None
    try:
        return nvml.open_device(
            nvml.load_pynvml(), device["device_uuid"], device["device_index"], os.environ.get("CUDA_VISIBLE_DEVICES")
        )
    except Exception:  # no driver library, no pynvml: training without device samples
        report_error()
        return None
