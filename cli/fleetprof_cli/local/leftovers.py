"""Sends the captures that a `fleetprof run` had to leave in its spool when its job ended without a hub.

That is traces, and how the captures ended that have none: without this the hub would wait for a job that is gone.

Guarantees: one spool after the other, each within a bound; a run that is alive is not touched, nor one of another host
(the state directory may be shared, and a lock in it need not be seen from here); a folder goes when its traces are
stored and the hub knows how its captures ended, and stays otherwise; no sidecar outlives the hub.
"""

import asyncio
import shutil
import socket
import time
from pathlib import Path
from typing import Final

from fleetprof_api.process.import_path import own_environment
from fleetprof_api.quantities import size

from fleetprof_cli.local.child import child_command
from fleetprof_cli.local.run.run_folder import RunFolder, RunRecord, run_folders
from fleetprof_cli.local.run.socket_directories import make_socket_directory, socket_directories
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say

_GRACE_S: Final = 120
_STARTS_WITHIN_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.2


async def send_leftovers(state: StateDirectory) -> None:
    """Sends what ended runs of this state directory have in their spools to the hub that runs now."""
    for folder in run_folders(state):
        record = folder.record()
        if record is None or record.host_name != socket.gethostname() or folder.is_alive():
            continue
        if not (folder.unsent_bytes() or folder.holds_captures()):
            continue
        await _await_spool(folder)
        if unsent := folder.unsent_bytes():
            say(f"sending {size(unsent)} of traces that the job {record.name!r} could not store before it ended")
        elif folder.holds_captures():
            say(f"the job {record.name!r} ended during a capture while no hub ran: finishing that capture")
        else:
            folder.remove()
            continue
        try:
            await _send(folder, record, state)
        except (Failure, OSError) as error:
            say(f"what it left stays in {folder.spool}: {error or 'the sidecar took too long'}")
            continue
        if folder.unsent_bytes():
            say(f"not all of them could be uploaded; they stay in {folder.spool} (log: {folder.log})")
        else:
            folder.remove()


def tidy_up(state: StateDirectory) -> None:
    """Removes what runs that were killed had no time to remove: sockets, and folders that hold nothing to send."""
    ours = set(socket_directories())
    for folder in run_folders(state):
        record = folder.record()
        if record is None or record.host_name != socket.gethostname() or folder.is_alive() or folder.is_served():
            continue
        if (sockets := Path(record.socket_directory)) in ours:
            shutil.rmtree(sockets, ignore_errors=True)
        if not (folder.unsent_bytes() or folder.holds_captures()):
            folder.remove()


async def _send(folder: RunFolder, record: RunRecord, state: StateDirectory) -> None:
    directory = make_socket_directory()  # no trainer will come: a sidecar has one
    arguments = [
        *("--directory", str(directory), "--spool", str(folder.spool), "--agent-directory", str(folder.agent)),
        *("--state", str(state.path)),
        *("--namespace", record.namespace, "--pod-name", folder.path.name, "--grace-seconds", str(_GRACE_S)),
    ]
    try:
        with folder.log.open("ab") as log:
            sidecar = await asyncio.create_subprocess_exec(
                *child_command("fleetprof_sidecar.main", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=own_environment(),
                start_new_session=True,
            )
        try:
            await _await_sidecar(state, folder, sidecar)
            sidecar.terminate()  # which means: send what is finished, then end
            await asyncio.wait_for(sidecar.wait(), _GRACE_S + _STARTS_WITHIN_S)
        finally:
            if sidecar.returncode is None:
                sidecar.kill()
                await sidecar.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _await_spool(folder: RunFolder) -> None:
    """Returns when no sidecar works on the spool any more: that of a run that was killed has told the hub itself."""
    end = time.monotonic() + _GRACE_S
    while folder.is_served():
        if time.monotonic() > end:
            return
        await asyncio.sleep(_LOOK_EVERY_S)


async def _await_sidecar(state: StateDirectory, folder: RunFolder, sidecar: asyncio.subprocess.Process) -> None:
    """Returns when the hub has heard from it, so that it knows all that the journal holds."""
    from fleetprof_cli.local.hub_client import HubClient

    async with asyncio.timeout(_STARTS_WITHIN_S), HubClient(state) as hub:
        while not any(one.identity.pod_name == folder.path.name for one in await hub.fleet()):
            if sidecar.returncode is not None:
                raise Failure(f"the sidecar ended with code {sidecar.returncode}")
            await asyncio.sleep(_LOOK_EVERY_S)
