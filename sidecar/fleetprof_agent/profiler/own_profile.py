"""Tells whether the job's own profiler has Kineto's one slot, and the lock that keeps our hands off it meanwhile.

PyTorch tells only that a profile records. It is at work before: from `_prepare_profiler`, the begin of a schedule's
warm-up, on Kineto holds its trace, and an empty profile of ours in that time takes the trace away and kills the job
(SIGSEGV, PyTorch 2.13 and 2.15). So three functions of torch.autograd.profiler are replaced by ones that call them and
take note: `_prepare_profiler`, and `_run_on_profiler_start` and `_run_on_profiler_stop`, which PyTorch calls before it
begins to record and after it has ended: no frame of these is in the job's own trace. One with stacks (`with_stack`)
shows every Python function that runs meanwhile, in every thread: `records_python` says when ours have to rest.

Guarantees: a job that does not profile itself pays nothing; what PyTorch's functions return or raise is the job's; a
profile of the job waits for ours at most LONGEST_WAIT_S (ours takes some ms, but for a recording that it drops), and
ours never begins while the job's is prepared or records; nvtx, itt and legacy profiles, which do not use Kineto, change
nothing. Where PyTorch has no such functions `is_observed` stays False. Thread-safe.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable

from fleetprof_agent.errors import pass_on, report_error

IDLE = ""
WARMUP = "warmup"  # prepared: Kineto holds its trace, and does not record yet
ACTIVE = "active"
# For a lock that is held for some ms, and for some tens of seconds where a large recording is dropped. A profile that
# begins in the middle of that would kill the job; should the lock ever not be given back, the job goes on.
LONGEST_WAIT_S = 60.0
_NAMES = ("_prepare_profiler", "_run_on_profiler_start", "_run_on_profiler_stop")


class OwnProfile:
    """The job's own profiler, of one process. `before_begin()` and `changed(phase)` are called in the job's thread."""

    def __init__(self) -> None:
        self.phase = IDLE
        self.is_observed = False
        self.records_python = False  # the job's profile records, or is about to, with stacks
        self.before_begin: Callable[[], None] = lambda: None
        self.changed: Callable[[str], None] = lambda phase: None
        # Re-entrant: a signal handler of the job may begin a profile in the middle of ours.
        self._lock = threading.RLock()
        self._owner: Any = None  # id of the profile that was prepared last; its end alone frees the slot
        self._ours = 0  # the thread in which an empty profile of ours runs

    def observe(self, module: Any) -> None:
        """Replaces the functions in torch.autograd.profiler. Once."""
        if self.is_observed or not all(callable(getattr(module, name, None)) for name in _NAMES):
            return
        prepare, run_on_start, run_on_stop = (getattr(module, name) for name in _NAMES)

        def _prepare_profiler(*args: Any, **kwargs: Any) -> Any:
            if self._ours == threading.get_ident():
                return prepare(*args, **kwargs)
            self._call(self.before_begin)
            is_held = self._lock.acquire(timeout=LONGEST_WAIT_S)
            try:
                before = self.phase, self._owner
                self.phase, self._owner = WARMUP, _find_profile(sys._getframe(1))
                try:
                    result = prepare(*args, **kwargs)
                except BaseException:
                    self.phase, self._owner = before
                    raise
                self.records_python = False  # should the one before never have been ended
            finally:
                if is_held:
                    self._lock.release()
            self._call(self.changed, WARMUP)
            return result

        def _run_on_profiler_start() -> Any:
            if self._ours == threading.get_ident():
                return None  # the job's code asks whether a profile is on: ours is none of its business
            result = run_on_start()
            if self.phase == WARMUP and self._owner == _find_profile(sys._getframe(1)):
                self.phase = ACTIVE
                self.records_python = bool(getattr(sys._getframe(1).f_locals.get("self"), "with_stack", False))
                self._call(self.changed, ACTIVE)
            return result

        def _run_on_profiler_stop() -> Any:
            if self._ours == threading.get_ident():
                return None
            result = run_on_stop()
            if self.phase and self._owner == _find_profile(sys._getframe(1)):
                self.phase, self._owner = IDLE, None
                self.records_python = False
                self._call(self.changed, IDLE)
            return result

        for function in (_prepare_profiler, _run_on_profiler_start, _run_on_profiler_stop):
            function._torchdynamo_disable = True  # type: ignore[attr-defined]
            setattr(module, function.__name__, function)
        self.is_observed = True

    def run_alone(self, profile: Callable[[], bool]) -> bool:
        """Runs an empty profile of ours, unless the job's is at work: False then. The job's next one waits for it."""
        with self._lock:
            if self.phase:
                return False
            self._ours = threading.get_ident()
            try:
                return profile()
            finally:
                self._ours = 0

    def abandon(self) -> None:
        """In a forked child: another thread may have held the lock, and nobody is to hear of anything."""
        self._lock = threading.RLock()
        self._ours = 0
        self.before_begin = lambda: None
        self.changed = lambda phase: None

    @staticmethod
    def _call(listener: Callable[..., None], *args: Any) -> None:
        try:
            listener(*args)
        except Exception as error:
            pass_on(error)
            report_error()


def _find_profile(frame: Any) -> int:
    """The identity of the profile whose method this is; 0 for a function."""
    owner = frame.f_locals.get("self")
    return 0 if owner is None else id(owner)
