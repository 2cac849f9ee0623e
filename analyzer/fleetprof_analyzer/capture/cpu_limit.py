"""The limit for which one trace may keep a processor busy: a small file can be made to cost its reader minutes.

Guarantees: counts CPU time of this process, so that a busy machine refuses nothing; what passes it raises
`LimitExceeded` where it is, in reading or in any measure, within a second. Where the interpreter delivers no signals to
the caller (a thread that is not the main one), or somebody else has SIGPROF, nothing is limited.
Source: setitimer(2), ITIMER_PROF.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fleetprof_analyzer.trace.limits import TraceLimits, refuse

_AGAIN_S = 1.0  # what was raised where it is swallowed (a finalizer) is raised again


class _Over(BaseException):
    """The time is over. No Exception: a measure's own guard against faults must not take it for one."""


def allowed_cpu_s(limits: TraceLimits, trace_bytes: int | None) -> float:
    """CPU seconds for a trace of this length as it is stored; None: not known."""
    return limits.cpu_s + (limits.cpu_s_per_mib * trace_bytes / (1 << 20) if trace_bytes else 0.0)


@contextmanager
def limit_cpu(seconds: float) -> Iterator[None]:
    """Raises LimitExceeded inside once this process has used so many seconds of CPU in it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGPROF) != signal.SIG_DFL:
        yield
        return
    is_over = False

    def stop(number: int, frame: FrameType | None) -> None:
        if not is_over:
            raise _Over

    signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_S)
        yield
    except _Over:
        raise refuse("the CPU time to analyse this trace", round(seconds), "seconds") from None
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
