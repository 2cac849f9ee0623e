"""The hub that `fleetprof run` starts: `python -m fleetprof_cli.local.job_hub STATE [HOST:PORT]`.

It is no child of the run that starts it, because other runs use it too.

Guarantees: it ends with the last job of its state directory, however that ends, when the captures under way are
finished or after a bound; sockets and folders of runs that were killed go with it. The lock of the state directory is
open in it as DESCRIPTOR from its first moment. A run that begins while it ends gets a hub.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from fleetprof_api.process.address import HostPort, parse_host_port

from fleetprof_cli.local import hub_lock
from fleetprof_cli.local.leftovers import send_leftovers, tidy_up
from fleetprof_cli.local.run.run_folder import live_runs
from fleetprof_cli.local.service import enter_service, stop_signals
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure

if TYPE_CHECKING:
    from fleetprof_operator.hub.hub import Hub

_LOOK_EVERY_S: Final = 0.25
_IDLE_LOOKS: Final = 2
"""So many in a row: whoever follows a capture gets its end."""
_FINISHES_WITHIN_S: Final = 300.0
"""As long as a hub waits for a sidecar that was lost; the next hub finishes what is open then."""


async def _serve(state: StateDirectory, listen: HostPort | None) -> bool:
    """Serves while there are jobs; whether it ended because there are none."""
    from fleetprof_cli.local.hub import run_hub
    from fleetprof_cli.local.network import own_certificate

    stop = stop_signals()
    at = (listen, own_certificate(state, listen)) if listen else None
    async with run_hub(state, at, state.store()) as (_record, hub):
        leftovers = asyncio.create_task(send_leftovers(state))
        idle = asyncio.create_task(_await_last_job(state, hub))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((idle, stopped), return_when=asyncio.FIRST_COMPLETED)
        for task in (leftovers, stopped):
            task.cancel()
        await asyncio.gather(leftovers, return_exceptions=True)
        if not idle.done():
            idle.cancel()
            return False
        tidy_up(state)
        return True


async def _await_last_job(state: StateDirectory, hub: "Hub") -> None:
    """Returns when no job is there, on this machine or another, and no capture of one is under way."""
    looks, last = 0, time.monotonic()
    while looks < _IDLE_LOOKS:
        await asyncio.sleep(_LOOK_EVERY_S)
        if any(live_runs(state)) or hub.count_connected():
            looks, last = 0, time.monotonic()
        elif any(capture.holds_place for capture in hub.captures.by_uid.values()):
            looks = _IDLE_LOOKS if time.monotonic() - last > _FINISHES_WITHIN_S else 0
        else:
            looks += 1


def _serve_while_jobs_come(state: StateDirectory, listen: HostPort | None, lock: IO[bytes]) -> None:
    hub_lock.sign(lock, ends_with_jobs=True)
    goes_on = asyncio.run(_serve(state, listen))
    lock.close()
    # A run that began after the last look saw the lock held; one that begins from here on takes it.
    while goes_on and any(live_runs(state)):
        with hub_lock.try_hold(state) as file:
            if file is None:
                return
            hub_lock.sign(file, ends_with_jobs=True)
            goes_on = asyncio.run(_serve(state, listen))


def main(arguments: Sequence[str]) -> None:
    """Serves the hub until the last job has ended."""
    # Whatever else whoever started the job had open, such as a lock of a script, is not for us to keep.
    os.closerange(hub_lock.DESCRIPTOR + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(hub_lock.DESCRIPTOR, False)
    lock = os.fdopen(hub_lock.DESCRIPTOR, "a+b", buffering=0)
    os.chdir("/")
    enter_service()
    path, *listen = arguments
    state = StateDirectory(Path(path))
    try:
        _serve_while_jobs_come(state, parse_host_port(listen[0]) if listen else None, lock)
    except Failure as failure:
        failure.show()
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
