"""`fleetprof-sidecar-supervisor`: the first process of the sidecar's container; it keeps one sidecar running.

A container that ends is started again by the kubelet up to five minutes later, with the pod shown in CrashLoopBackOff;
and a native sidecar that ends before the kubelet has seen it run holds the trainer back. So this process needs nothing
but the standard library, ends when it is told to and never else, and starts the sidecar anew after a moment. It hands
the agent over first: the trainer may import PyTorch before the sidecar has loaded gRPC.

Guarantees: SIGTERM and SIGINT are passed on and end both, with exit code 0; whatever the sidecar does, it is started
again, with growing pauses; a socket that it left behind is removed, for it would delay every trainer's exit by 9 s.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fleetprof_api.memory_shortage import SERVICE, go_first
from fleetprof_api.process.backoff import Backoff
from fleetprof_api.process.import_path import module_command, own_environment
from fleetprof_api.process.log import set_up_logging

from fleetprof_sidecar.sockets.directory import SocketDirectory

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
# What lived so long is healthy again: its next death is a first one.
_HEALTHY_AFTER_S: Final = 60.0
_IDLE_S: Final = 3600.0
_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT)
_WATCHED: Final = (*_ENDINGS, signal.SIGCHLD)

log = logging.getLogger(__name__)


class Supervisor:
    """Keeps `command` running between `run` and the first signal that ends us."""

    def __init__(self, command: Sequence[str], directory: SocketDirectory | None) -> None:
        self._command = list(command)
        self._directory = directory
        self._pid = 0
        self._pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._started_at = 0.0
        self._start_again_at = 0.0
        self._is_ending = False

    def run(self) -> None:
        """Returns once the sidecar has ended after we were told to end. Blocks the signals that it waits for."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        self._hand_over()
        self._start()
        while self._pid or not self._is_ending:
            took = signal.sigtimedwait(_WATCHED, _IDLE_S if self._pid else self._pause_s())
            if took is not None and took.si_signo in _ENDINGS:
                self._end()
            self._reap()
            if not self._pid and not self._is_ending and self._pause_s() <= 0:
                self._start()

    def _end(self) -> None:
        self._is_ending = True
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)

    def _start(self) -> None:
        self._started_at = time.monotonic()
        try:
            self._pid = os.posix_spawnp(self._command[0], self._command, own_environment(), setsigmask=[])
        except OSError as problem:
            self._note_death(f"cannot be started: {problem}")

    def _reap(self) -> None:
        """Takes note of every process that has ended: we are the first of the container, and orphans come to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._pid:
                self._pid = 0
                self._note_death(f"ended with {os.waitstatus_to_exitcode(status)}")

    def _note_death(self, how: str) -> None:
        if time.monotonic() - self._started_at > _HEALTHY_AFTER_S:
            self._pause.reset()
        self._start_again_at = self._started_at + self._pause.next_s()
        if not self._is_ending:
            log.warning("the sidecar %s; the training processes are not affected", how)
        if self._directory is not None:
            with suppress(OSError):
                self._directory.close()

    def _pause_s(self) -> float:
        """Until the next start."""
        return max(0.0, self._start_again_at - time.monotonic())

    def _hand_over(self) -> None:
        if self._directory is None:
            return
        try:
            self._directory.prepare()
        except OSError as problem:
            log.warning("the agent cannot be handed over yet: %s", problem)


def main() -> None:
    """Runs `fleetprof-sidecar` with our arguments and environment until SIGTERM or SIGINT; its help is ours."""
    command = module_command("fleetprof_sidecar.main", *sys.argv[1:])
    if not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        os.execv(command[0], command)  # noqa: S606  our own module, by argument list
    go_first(SERVICE)
    set_up_logging(os.environ.get("FLEETPROF_LOG_LEVEL", "info"))
    directory = None
    try:
        directory = SocketDirectory(os.environ.get("FLEETPROF_DIRECTORY", ""))
    except ValueError as problem:
        log.warning("FLEETPROF_DIRECTORY: %s", problem)  # the sidecar itself says so and ends; its settings may differ
    Supervisor(command, directory).run()


if __name__ == "__main__":
    main()
