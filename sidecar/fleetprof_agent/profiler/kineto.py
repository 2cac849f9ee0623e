"""The agent's hold on Kineto in its own process: drop its on-demand trace, and make exits safe.

An interpreter that ends while Kineto collects or writes a trace dies by SIGSEGV (PyTorch 2.13 and 2.15, every exit but
few). An empty profile takes precedence over an on-demand trace: one that is collecting is dropped (one that is only
pending in 2.15, but not in 2.13: there it has to begin first), one that is being written is completed first, and the
exit is as the job meant it. A profile of the job's own would be dropped as well, and the job die of it: own_profile.py.

No profile, ours or the job's, must begin between the end of an on-demand window and its file's completion: Kineto's
threads work on the trace then without a lock, and the job dies by SIGSEGV there or later (2.13, and 2.15 with windows
by time), or Kineto never ends a window again (2.13). Such an end takes up to a second and the time to write the file.

With KINETO_USE_DAEMON, a forked child that ends by `sys.exit` (not by `os._exit`, as multiprocessing's do) hangs for
ever: libkineto joins a thread that did not survive the fork (PyTorch 2.13 and 2.15, without us as well).
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Callable

from fleetprof_agent.errors import pass_on
from fleetprof_agent.process import libc
from fleetprof_agent.profiler.own_profile import OwnProfile

_LOOK_AGAIN_S = 0.01


class OnDemandTrace:
    """Kineto's on-demand slot in this process. `version`: PyTorch's; `own`: the job's own profiler, which always wins.

    `is_ending` everywhere: the window is over, so that what goes on is left to end by itself.
    """

    def __init__(self, version: str, own: OwnProfile) -> None:
        self._own = own
        self._keeps_pending = not _drops_pending(version)
        self.free_since_step = 0  # the last one at which the job's own profile had Kineto
        self._dropped: set[str] = set()  # files of traces that are no more: Kineto keeps them open

    def drop(self, capture: str, *, is_due: bool, is_ending: bool, begins: Callable[[], object]) -> bool:
        """Has Kineto forget this capture's order: True once it has nothing of it.

        `is_due`: it would have begun by now if it were still pending. `begins` is called when nothing stands in the way
        of dropping a recording.

        Runs an empty profile, not while the job's own profiler is at work. That takes some ms where nothing is
        recorded, else as long, and as much memory, as writing what is: PyTorch works through all of it first.
        """
        if any(_capture_of(name) == capture for name in self._dropped):
            return True
        is_open = self.is_open()
        if is_open and is_ending:
            return False
        if self._keeps_pending and not is_open:
            return is_due and not self._own.phase
        return self._own.is_observed and self._own.run_alone(lambda: self._drop(begins if is_open else None))

    def note_own_profile(self) -> None:
        """The job's own profile has begun: what was open is dropped."""
        self._dropped = _open_traces()

    def is_open(self) -> bool:
        """Tells whether a trace goes on: from its start until it is complete."""
        return bool(_open_traces() - self._dropped)

    def await_completion(self, patience_s: float) -> None:
        """Waits until no trace goes on."""
        until = time.monotonic() + patience_s
        while self.is_open() and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)

    def guard_exit(self, patience_s: float, *, is_armed: bool, is_ending: bool) -> None:
        """Lets the interpreter end in peace: to be called when it does."""
        if is_ending:
            self.await_completion(patience_s)
            is_armed = False
        if self.is_open() or is_armed:
            # A PyTorch that cannot be observed tells at least when a profile records.
            module = sys.modules.get("torch.autograd.profiler")
            if self._own.is_observed or not getattr(module, "_is_profiler_enabled", False):
                self._own.run_alone(self._drop)

    def _drop(self, begins: Callable[[], object] | None = None) -> bool:
        if begins is not None:
            begins()
        # The inner of the two profilers: torch.profiler.profile sets environment variables for CUDA graphs as well.
        profiler, torch = sys.modules.get("torch.autograd.profiler"), sys.modules.get("torch")
        if profiler is None or torch is None:
            return False
        try:
            empty = profiler.profile(use_kineto=True)  # the CPU alone: CUPTI is not started for this
            empty._prepare_trace()
            self._dropped = _open_traces()
            if torch._C._autograd._profiler_enabled():
                return True  # at the exit, in a thread with a profile of another kind: it could not begin to record
            empty._start_trace()
            empty.__exit__(None, None, None)
        except Exception as error:
            pass_on(error)
            return False
        return True


def _drops_pending(version: str) -> bool:
    """Tells whether a profile drops an order that is only pending: PyTorch 2.15 does, 2.13 keeps it."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (2, 15)


def _capture_of(name: str) -> str:
    """The capture in the name of an output file, `<capture>-r<rank>_<pid>.json.tmp`."""
    return name.rpartition("_")[0].rpartition("-r")[0]


def _open_traces() -> set[str]:
    """The names of the output files that Kineto holds open: `..._<pid>.json.tmp`."""
    ending = "_%d.json.tmp" % os.getpid()
    found = set()
    try:
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink("/proc/self/fd/" + descriptor)
            except OSError as error:
                pass_on(error)
                continue
            if target.endswith(ending):
                found.add(target.rpartition("/")[2])
    except OSError as error:
        pass_on(error)
    return found


def keep_forked_exits_short() -> None:
    """To be called once, before anything forks: a child that ends by `sys.exit` will skip libkineto's destructor.

    Nothing is done in the child before its own exit: one that ends by `os._exit`, as multiprocessing's do, never runs
    any of it.
    """
    parent = os.getpid()

    def skip_destructors_in_a_child() -> None:
        if os.getpid() != parent:
            libc.skip_destructors_at_exit()

    atexit.register(skip_destructors_in_a_child)
