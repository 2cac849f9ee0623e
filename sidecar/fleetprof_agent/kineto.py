"""What the agent may do to Kineto in its own process: drop the on-demand trace that is pending or being collected.

An interpreter that ends while Kineto collects or writes a trace dies by SIGSEGV (PyTorch 2.13 and 2.15: 17 of 17
exits). An empty profile takes precedence over an on-demand trace: one that is pending or collecting is dropped, one
that is being written is completed first (4 of 4 in either version), and the exit is as the job meant it.
"""

from __future__ import annotations

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
