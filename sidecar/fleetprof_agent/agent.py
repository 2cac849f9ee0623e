"""The agent in a trainer: an optimizer hook, a thread that sleeps, and for the length of a capture one that works.

Guarantees, in the order in which they matter: no exception of ours reaches the training, and the first one ends the
agent; a step costs next to nothing (steps/hook.py), and once a second a datagram; nothing waits; outside a capture one
thread, which sleeps until somebody asks for stacks (stacks/listener.py; FLEETPROF_STACKS=0: none); a forked child is
silent and does nothing; the interpreter's exit while Kineto is at work is made safe (profiler/kineto.py). A process
that makes no step says once that the agent is there (half a millisecond, when PyTorch has been imported), answers who
asks, removes its sockets at its exit, and nothing else.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import Any, Callable

from fleetprof_agent import wire
from fleetprof_agent.capture.capture_thread import CaptureThread
from fleetprof_agent.channel import Channel
from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.process import identity
from fleetprof_agent.process.memory import ProcessMemory
from fleetprof_agent.profiler import kineto, own_profile
from fleetprof_agent.samples import nvml
from fleetprof_agent.samples.slow_samples import SlowSamples
from fleetprof_agent.stacks.listener import StackListener
from fleetprof_agent.steps.hook import LISTEN_NS, StepHook
from fleetprof_agent.steps.reports import StepReports
from fleetprof_agent.steps.ring import StepRing


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
    _agent = Agent(directory, profiler.KinetoStepTracker.current_step, own)
    _agent.hook.register(optimizer)
    os.register_at_fork(after_in_child=_agent.abandon)
    kineto.keep_forked_exits_short()
    _agent.announce(take)


_agent: Agent | None = None


class Agent:
    """The agent of one process; `current_step` is torch.autograd.profiler.KinetoStepTracker's."""

    def __init__(self, directory: str, current_step: Callable[[], int], own: own_profile.OwnProfile) -> None:
        self._own_profile = own
        own.changed = self._tell_own_profile
        version = str(getattr(identity.loaded("torch"), "__version__", ""))
        self._trace = kineto.OnDemandTrace(version, own)
        self._directory = directory
        self._current_step = current_step
        self._ring = StepRing()
        self.hook = StepHook(self._ring, current_step, self._serve, self._give_up)
        self._started_unix_ns = time.time_ns()
        self._waiting: dict[str, Any] = {}  # what is said of this process before its first step
        self._serving = threading.Lock()
        self._is_alive = True
        self._channel: Channel | None = None
        self._stacks: StackListener | None = None
        # From the first step on.
        self._reports: StepReports | None = None
        self._slow_samples: SlowSamples | None = None
        self._captures: CaptureThread | None = None

    def announce(self, take: Callable[[], Channel | None]) -> None:
        """Says, before the first step, that there is an agent in this process: a request may wait for it then."""
        kineto_socket = identity.find_kineto_socket(self._directory)
        channel = take()
        if not kineto_socket:
            if channel is not None:
                channel.close()
            return  # no orders reach this process
        self._channel = channel or Channel(self._directory)
        atexit.register(self.leave)
        known = identity.describe_process(identity.loaded("torch"))
        self._waiting = {**known, "kineto": kineto_socket, "started_unix_ns": self._started_unix_ns}
        self._say_hello()
        self._listen()

    def abandon(self) -> None:
        """Called in a forked child: the socket, the captures and the exit are the parent's.

        Other threads of the parent may have held any lock at the fork: no lock is taken, nothing loaded or looked up.
        """
        self._is_alive = False
        captures, self._captures = self._captures, None
        stacks, self._stacks = self._stacks, None
        self._own_profile.abandon()
        channel, self._channel = self._channel, None
        try:
            self.hook.give_up()
            if captures is not None:
                captures.abandon()
            if stacks is not None:
                stacks.abandon()
            if channel is not None:
                channel.close()
        except Exception as error:
            pass_on(error)
            report_error()

    def leave(self) -> None:
        """The exit of the interpreter, in the orderly way."""
        try:
            if not self._is_alive:
                return
            self._is_alive = False
            channel, captures, stacks = self._channel, self._captures, self._stacks
            if stacks is not None:
                stacks.end()
            if channel is None:
                return
            if captures is not None:
                channel.send("bye", capture=captures.end(), reason="exit")
            else:  # without a step nobody is told of a capture, and Kineto may record all the same
                self._trace.guard_exit(0.0, is_armed=False, is_ending=False)
            channel.close()
        except Exception as error:
            pass_on(error)
            report_error()

    def _say_hello(self) -> None:
        if self._reports is not None:
            self._reports.send_hello()
        elif self._channel is not None:
            ranks = identity.read_ranks(dict(os.environ), identity.loaded("torch.distributed"))
            self._channel.send("hello", **self._waiting, **ranks, role=wire.WAITING)

    def _listen(self) -> None:
        channel = self._channel
        if channel is None or os.environ.get("FLEETPROF_STACKS") == "0":
            return
        try:
            self._stacks = StackListener(self._directory, channel, self._ring, self._say_hello)
            self._stacks.start()
        except Exception as error:  # an agent that cannot be asked for stacks
            pass_on(error)
            report_error()

    def _serve(self, optimizer: Any, now: int) -> None:
        """Listens and reports; runs in the hook, at most every LISTEN_NS, in one thread at a time."""
        if not self._is_alive or not self._serving.acquire(blocking=False):
            return
        try:
            self.hook.next_service = now + LISTEN_NS
            if self._current_step() < 1:
                return  # Kineto does not count in this process: it cannot be asked for steps
            if self._captures is None:
                self._open(optimizer, now)
            reports, captures = self._reports, self._captures
            if captures is None or reports is None:
                return
            captures.listen(now, (threading.get_ident(), threading.get_native_id()))
            reports.send_due(now, self._own_profile.phase)
            if self._slow_samples is not None and not captures.has_watch():
                self._slow_samples.send_due(now, self._current_step())
        finally:
            self._serving.release()

    def _open(self, optimizer: Any, now: int) -> None:
        torch = identity.loaded("torch")
        device = identity.read_device(torch, optimizer)
        sampler = nvml.open_sampler(device)
        memory = ProcessMemory()
        hello = {
            **identity.describe_process(torch),
            "role": wire.TRAINER,
            **{name: value for name, value in device.items() if name != "device_index"},
            "kineto": identity.find_kineto_socket(self._directory),
            "started_unix_ns": self._started_unix_ns,
        }
        if self._channel is None:
            self._channel = Channel(self._directory)
        channel, ring = self._channel, self._ring
        self._reports = reports = StepReports(channel, ring, memory, hello)
        captures = CaptureThread(
            channel,
            ring,
            reports,
            self._current_step,
            self._own_profile,
            self._trace,
            memory,
            sampler,
            self.hook.follow,
        )
        self._own_profile.before_begin = captures.await_trace
        if sampler is not None:
            self._slow_samples = SlowSamples(channel, sampler, now)
        # Before the handlers that are registered already, PyTorch's among them.
        atexit.unregister(self.leave)
        atexit.register(self.leave)
        self._captures = captures

    def _tell_own_profile(self, phase: str) -> None:
        """The job's own profile has begun or ended, in the job's thread."""
        if phase == own_profile.WARMUP:
            self._trace.note_own_profile()
        if phase == own_profile.IDLE:
            self._trace.free_since_step = self._current_step()
        channel = self._channel
        if channel is not None and self._captures is not None and self._is_alive:
            channel.send("profile", own_profile=phase)
        self._rest_or_rise()

    def _rest_or_rise(self) -> None:
        """Nothing of ours runs, in no thread, while the job's profile records stacks; the steps of then are unknown."""
        captures = self._captures
        if self._own_profile.records_python:
            self.hook.rest()
            if captures is not None:
                captures.rest()
            if self._stacks is not None:
                self._stacks.rest()
            return
        self.hook.resume()
        if self._stacks is not None and self._is_alive:
            self._stacks.start()
        if captures is not None and self._is_alive and self._serving.acquire(blocking=False):
            try:
                captures.rise()
            finally:
                self._serving.release()

    def _give_up(self) -> None:
        """After an error of ours: no step is looked at any more; only the exit is still guarded."""
        try:
            self.hook.give_up()
            channel = self._channel
            if channel is not None and self._captures is None:
                channel.close()  # nobody is to wait for the first step's word
        except Exception as error:
            pass_on(error)
            report_error()
