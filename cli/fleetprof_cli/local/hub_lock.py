"""The lock of a state directory: who holds it is the one hub there, or a process that is about to be.

Guarantees: it goes with the process that holds it, however that ends; it can be handed to a process that starts, so
that two who begin at once never start two hubs.
"""

import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Final

import msgspec

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say

DESCRIPTOR: Final = 3
"""The descriptor of the lock in a process to which it was handed."""
_FILE: Final = "lock"
_LEAVES_WITHIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.1


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The lock's word on the process that holds it; nothing while that starts."""

    pid: int = 0
    ends_with_jobs: bool = False
    host_name: str = ""


def is_held(state: StateDirectory) -> bool:
    """Tells whether a hub runs, or starts, with a state directory."""
    try:
        with (state.path / _FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_holder(state: StateDirectory) -> LockHolder:
    """Reads the process that holds the lock, or held it last."""
    try:
        return msgspec.json.decode((state.path / _FILE).read_bytes(), type=LockHolder)
    except (OSError, msgspec.DecodeError):
        return LockHolder()


@contextmanager
def try_hold(state: StateDirectory) -> Iterator[IO[bytes] | None]:
    """The file that holds the lock until the block ends, None where another process has it. Raises Failure."""
    with ExitStack() as cleanup:
        with state.errors():
            # Unbuffered: what does not fit on the disk fails here and not once more when the file is closed.
            file = cleanup.enter_context((state.path / _FILE).open("a+b", buffering=0))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(0)
                taken: IO[bytes] | None = file
            except BlockingIOError:
                taken = None
        yield taken


def sign(file: IO[bytes], *, ends_with_jobs: bool) -> None:
    """Writes this process into the lock that it holds. Raises OSError."""
    holder = LockHolder(pid=os.getpid(), ends_with_jobs=ends_with_jobs, host_name=socket.gethostname())
    file.truncate(0)
    file.write(msgspec.json.encode(holder) + b"\n")


@contextmanager
def hold(state: StateDirectory) -> Iterator[None]:
    """Holds a directory for one `up`, which takes over from a hub that jobs have started.

    Raises Failure when another `up` holds it.
    """
    end = time.monotonic() + _LEAVES_WITHIN_S
    leaving_pid = 0
    while True:
        with try_hold(state) as file:
            if file is not None:
                with state.errors():
                    sign(file, ends_with_jobs=False)
                yield
                return
        holder = read_holder(state)
        is_another_up = holder.pid and not holder.ends_with_jobs
        if is_another_up or holder.host_name not in ("", socket.gethostname()) or time.monotonic() > end:
            raise _refuse(state, holder)
        if holder.pid and leaving_pid != holder.pid:
            say(f"taking over from the hub that jobs have started (pid {holder.pid})")
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
            leaving_pid = holder.pid
        time.sleep(_LOOK_EVERY_S)


def _refuse(state: StateDirectory, holder: LockHolder) -> Failure:
    where = f"pid {holder.pid or 'unknown'}"
    if holder.host_name not in ("", socket.gethostname()):
        where += f" on {holder.host_name}"
    return Failure(
        f"`fleetprof up` already runs with this state directory ({where})"
        if not holder.ends_with_jobs
        else f"a hub that jobs have started runs with this state directory ({where})",
        next_step=f"use it, stop it, or give this one another directory: --state DIR (now {state.path})",
    )
