"""What the agent may do to Kineto in its own process: drop its on-demand trace, and make exits safe.

An interpreter that ends while Kineto collects or writes a trace dies by SIGSEGV (PyTorch 2.13 and 2.15, every exit but
few). An empty profile takes precedence over an on-demand trace: one that is collecting is dropped (one that is only
pending in 2.15, but not in 2.13: there it has to begin first), one that is being written is completed first, and the
exit is as the job meant it.

With KINETO_USE_DAEMON, a forked child that ends by `sys.exit` (not by `os._exit`, as multiprocessing's do) hangs for
ever: libkineto joins a thread that did not survive the fork (PyTorch 2.13 and 2.15, without us as well).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

_lock = threading.Lock()


def is_own_profile_running() -> bool:
    """Tells whether the job's own profiler is at work; Kineto has then dropped its on-demand trace by itself."""
    return bool(getattr(sys.modules.get("torch.autograd.profiler"), "_is_profiler_enabled", False))


def drop_trace() -> bool:
    """Runs an empty profile. False when the job's own profiler runs (it must not be disturbed) or PyTorch refused.

    Takes some ms, 0.3 s when stacks are being recorded; waits until a trace that is being written is complete.
    """
    with _lock:
        if is_own_profile_running():
            return False
        # The inner of the two profilers: torch.profiler.profile sets environment variables for CUDA graphs as well.
        profiler = sys.modules.get("torch.autograd.profiler")
        if profiler is None:
            return False
        try:
            with profiler.profile(use_kineto=True):  # the CPU alone: CUPTI is not started for this
                pass
        except Exception:
            return False
        return True


def can_drop_pending(version: str) -> bool:
    """Tells whether an empty profile drops an order that is only pending: PyTorch 2.15 does, 2.13 keeps it."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (2, 15)


def drop_open_trace() -> bool:
    """As drop_trace, for a PyTorch that keeps pending orders: False until the trace has begun."""
    return is_trace_open() and drop_trace()


def is_trace_open() -> bool:
    """Tells whether Kineto holds an output file open: from the start of a trace until it is complete.

    Kineto names it `..._<pid>.json.tmp`; after a trace was dropped the file stays open.
    """
    ending = "_%d.json.tmp" % os.getpid()
    try:
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + descriptor).endswith(ending):
                    return True
            except OSError:
                continue
    except OSError:
        pass
    return False


def skip_destructors_at_exit() -> None:
    """For a forked child: its exit flushes C's streams and ends with the status it has, before libkineto's destructor.

    What Python does at exit is done by then. Raises AttributeError where the C library is not glibc.
    """
    libc = ctypes.CDLL(None)
    # Run in the reverse order, and before what was registered when the libraries were loaded.
    libc.on_exit(libc._exit, None)
    libc.__cxa_atexit(libc.fflush, None, None)
