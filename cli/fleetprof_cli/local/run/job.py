"""Runs somebody's command as if we were not there: its terminal, its signals, its exit code.

Guarantees: the command keeps our process group, terminal, standard streams and signal dispositions; every signal sent
to us is passed on once (what the terminal sent to the whole group has reached it already); we end as it did, by the
same signal where one ended it. Source: sigwaitinfo(2), siginfo si_code; bash(1), exit status.
"""

import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from fleetprof_api.errors import FleetprofError

_FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_WATCHED: Final = (*_FORWARDED, signal.SIGCHLD)
# Python ignores these two in itself; a command started by a shell has them at their default.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126


class CannotStart(FleetprofError):
    """The command could not be started; `code` is what a shell would end with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def find_program(word: str) -> None:
    """Raises CannotStart where no program of that name is on PATH, before anything is started for it."""
    if "/" not in word and shutil.which(word) is None:
        raise CannotStart(f"{word}: command not found", NOT_FOUND)


def block_signals() -> None:
    """From here on signals wait to be taken by `wait_for`; call it before anything is started."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)


def start(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Starts the command beside us and returns its pid. Raises CannotStart."""
    try:
        return os.posix_spawnp(command[0], list(command), environment, setsigmask=[], setsigdef=_IGNORED_BY_PYTHON)
    except FileNotFoundError:
        raise CannotStart(f"{command[0]}: command not found", NOT_FOUND) from None
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from None


def wait_for(pid: int, look_after: Callable[[], float]) -> int:
    """Waits for the command, passing signals on; its exit code, -n where signal n ended it.

    `look_after` is called whenever a child changed and at least after as many seconds as it returned: it reaps and
    restarts what else is ours.
    """
    while True:
        code = reap(pid)
        if code is not None:
            return code
        took = signal.sigtimedwait(_WATCHED, look_after())
        if took is None or took.si_signo == signal.SIGCHLD:
            continue
        # si_code > 0 is the kernel's: the terminal signalled the whole foreground group, the command included.
        if took.si_code <= 0:
            os.kill(pid, took.si_signo)


def reap(pid: int) -> int | None:
    """The exit code of a child that has ended, -n where signal n ended it; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return None if ended == 0 else os.waitstatus_to_exitcode(status)


def end_as(code: int) -> NoReturn:
    """Ends this process as the command ended, so that whoever started us sees no difference; leaves no core of ours."""
    if code >= 0:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # SIGKILL cannot be set
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)  # the first process of a container outlives a signal


def wait_bounded(pid: int, seconds: float) -> bool:
    """Waits until a child has ended, at most so long or until a signal asks us to hurry; tells whether it has."""
    end = time.monotonic() + seconds
    while reap(pid) is None:
        left = end - time.monotonic()
        if left <= 0:
            return False
        took = signal.sigtimedwait(_WATCHED, left)
        if took is not None and took.si_signo != signal.SIGCHLD:
            return reap(pid) is not None
    return True


def hurried(seconds: float) -> bool:
    """Waits so long; tells whether a signal asked us to hurry meanwhile."""
    took = signal.sigtimedwait(_WATCHED, seconds)
    return took is not None and took.si_signo != signal.SIGCHLD
