"""The sidecar beside a command of `fleetprof run`: started before it, restarted when it dies, ended after it.

What its log names as an obstacle (`fleetprof_sidecar.obstacles`) is passed on to the person.

Guarantees: whatever happens to the sidecar, the command is not touched; no method raises once `start` has returned.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleetprof_api.process.backoff import Backoff

from fleetprof_cli.local.child import start_child
from fleetprof_cli.local.run import job
from fleetprof_cli.messages import say

_READY_WITHIN_S: Final = 10.0
_ENDS_WITHIN_S: Final = 10.0
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0
# What lived so long is healthy again: its next death is a first one.
_HEALTHY_AFTER_S: Final = 60.0
_MOST_READ_BYTES: Final = 1 << 16
_LOOK_EVERY_S: Final = 2.0


class SidecarProcess:
    """One sidecar process and its successors; `socket` is the file that tells that it answers."""

    def __init__(self, arguments: Sequence[str], *, log: Path, socket: Path) -> None:
        self._arguments = list(arguments)
        self._log = log
        self._socket = socket
        self._pid = 0
        self._started_at = 0.0
        self._restart_at: float | None = None
        self._deaths = 0
        self._pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._read_bytes = 0

    def start(self) -> bool:
        """Starts it and waits until it answers; False when it ended or did not come up in time."""
        self._spawn()
        end = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < end:
            if self._socket.exists():
                return True
            if job.reap(self._pid) is not None:
                self._pid = 0
                return False
            time.sleep(0.02)
        return False

    def _spawn(self) -> None:
        # Its own session: the terminal's Ctrl-C is for the job; the sidecar ends after it.
        self._pid = start_child("fleetprof_sidecar.main", self._arguments, log=self._log)
        self._started_at = time.monotonic()

    def look_after(self) -> float:
        """Reaps a dead sidecar and restarts it after a pause; seconds until it wants to be called again."""
        self._pass_on()
        now = time.monotonic()
        if self._pid and job.reap(self._pid) is not None:
            self._pid = 0
            if now - self._started_at > _HEALTHY_AFTER_S:
                self._deaths = 0
                self._pause.reset()
            self._deaths += 1
            self._restart_at = now + self._pause.next_s()
            if self._deaths == 1:
                say(f"the sidecar ended; the job is not affected; starting it again (log: {self._log})")
        if self._restart_at is not None and now >= self._restart_at:
            self._restart_at = None
            try:
                self._spawn()
            except OSError:
                self._restart_at = now + _LONGEST_PAUSE_S
        return _LOOK_EVERY_S if self._restart_at is None else max(0.05, self._restart_at - now)

    def _pass_on(self) -> None:
        """Says what the log has named as an obstacle since."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._read_bytes)
                new = log.read(_MOST_READ_BYTES)
        except OSError:
            return
        if len(new) < _MOST_READ_BYTES:
            new = new[: new.rfind(b"\n") + 1]  # the rest of a line comes later
        self._read_bytes += len(new)
        for line in new.splitlines():
            with suppress(ValueError, AttributeError):
                obstacle = json.loads(line).get("obstacle")
                if obstacle:
                    say(f"this job cannot be captured: {obstacle}")

    def stop(self, grace_s: float) -> bool:
        """Asks it to finish its uploads and end, and kills it some seconds after the grace that it was given.

        Tells whether it ended by itself.
        """
        if not self._pid:
            return False
        _signal(self._pid, signal.SIGTERM)
        if not job.wait_bounded(self._pid, 1.0):
            say("waiting for the sidecar to store what was captured (Ctrl-C to leave it)")
            if not job.wait_bounded(self._pid, grace_s + _ENDS_WITHIN_S):
                self.kill()
                return False
        self._pid = 0
        return True

    def kill(self) -> None:
        """Ends it at once; what it has not stored stays in its spool."""
        if self._pid:
            _signal(self._pid, signal.SIGKILL)
            job.wait_bounded(self._pid, 5.0)
            self._pid = 0


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
