"""The hub of a `fleetprof run`: the one that runs already, else one that this run starts for itself and all that come.

Guarantees: the command waits for nothing here; of runs that begin at once, one starts the hub; what keeps it from
serving is said once.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleetprof_api.process.import_path import module_command, own_environment
from fleetprof_api.process.version import VERSION

from fleetprof_cli.local import hub_lock
from fleetprof_cli.local.run import job
from fleetprof_cli.local.run.run_folder import live_runs
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import say

_MODULE: Final = "fleetprof_cli.local.job_hub"
_ANY_PORT: Final = "0.0.0.0:0"
_SAID_AFTER_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.1


def choose_place(environment: Mapping[str, str]) -> str | None:
    """The address of a hub of this run, "" for a socket; None where the run of another host starts it.

    Source: srun(1), output environment variables.
    """
    nodes = environment.get("SLURM_STEP_NUM_NODES") or environment.get("SLURM_NNODES") or "1"
    if nodes == "1":
        return ""
    return _ANY_PORT if environment.get("SLURM_NODEID", "0") == "0" else None


class SharedHub:
    """Make it when the run's folder is held: a hub that ends looks for runs once more."""

    def __init__(self, state: StateDirectory, log: Path) -> None:
        self._state = state
        self._log = log
        self._pid = 0

    def join(self, environment: Mapping[str, str]) -> None:
        """Uses the hub that is there, or starts one. Raises Failure, OSError."""
        place = choose_place(environment)
        if place is None:
            say("the hub starts with the run on the first host of the allocation")
            return
        with hub_lock.try_hold(self._state) as lock:
            if lock is not None:
                self._start(lock.fileno(), [place] if place else [])
                say("a hub starts with this job, and ends with the last one")
                return
        record = self._state.hub()
        if record is not None and record.version != VERSION:
            other = record.version or "another version"
            say(
                f"the hub here (pid {record.pid}) is of {other}, and this job of {VERSION}; "
                "if captures fail, end it and start the job again"
            )

    def _start(self, lock: int, place: list[str]) -> None:
        command = module_command(_MODULE, str(self._state.path), *place)
        self._pid = os.posix_spawn(
            command[0],
            command,
            own_environment(),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, lock, hub_lock.DESCRIPTOR),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )

    def look_after(self) -> None:
        """Reaps a hub of ours that has ended, and says why where it failed."""
        if not self._pid or (code := job.reap(self._pid)) is None:
            return
        self._pid = 0
        if code:
            with suppress(OSError):
                lines = self._log.read_text(errors="replace").strip().splitlines()
                why = " ".join(line.removeprefix("fleetprof:").strip() for line in lines[-2:])
                say(f"this job cannot be captured, its hub ended: {why or f'code {code}'}")

    def leave(self, grace_s: float) -> None:
        """Waits until the hub has ended where this was its last job, so long or until a signal asks us to hurry."""
        end = time.monotonic() + grace_s
        said_at = time.monotonic() + _SAID_AFTER_S
        while self._ends_now():
            if time.monotonic() > end:
                say("the hub goes on until the captures of this job are finished")
                return
            if time.monotonic() > said_at:
                say("waiting for the hub, which ends with this job (Ctrl-C to leave it)")
                said_at = end + 1
            if job.hurried(_LOOK_EVERY_S):
                return

    def _ends_now(self) -> bool:
        self.look_after()
        if any(live_runs(self._state)):
            return False
        if self._pid:
            return True  # till the process is gone, not only its lock
        return hub_lock.is_held(self._state) and hub_lock.read_holder(self._state).ends_with_jobs
