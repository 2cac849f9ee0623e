"""The folder for the sockets of a `fleetprof run`: a short path that no other user can have, now or later.

    $TMPDIR or /tmp / fp<uid>-<token> / <token>
                      made once, kept   one per run, removed at its end

Kineto takes 54 characters for the directory (the client's socket name has 52, and it copies the path into 108 bytes
without a check), so it cannot be the state directory. A job's children may know the path for longer than the run lasts:
what is above it is never removed, so that nobody else can make it anew and speak to them as the sidecar.

Guarantees: everything on the way down belongs to root or this user, and nobody else can rename it; what is used was
looked at and not followed.
"""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fleetprof_cli.messages import Failure

MAX_SOCKET_DIRECTORY: Final = 54
_TOKEN: Final = 8  # characters of mkdtemp


def socket_directories() -> list[Path]:
    """All socket directories of this user that are there now, but for those in other temporary directories."""
    bases = [base for root in _roots() for base in _own_bases(root)]
    return sorted(path for base in bases for path in base.iterdir() if path.is_dir())


def is_listened_at(directory: Path) -> bool:
    """Tells whether a process still holds a socket in it, of whatever state directory its run is."""
    try:
        return any(path.is_socket() and _answers(path) for path in directory.iterdir())
    except OSError:
        return False


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))  # sends nothing
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def make_socket_directory() -> Path:
    """A private directory whose path is short enough. Raises Failure when none can be made.

    Not below $XDG_RUNTIME_DIR: the traces are written into it, that is main memory, and it goes with the session.
    """
    for root in _roots():
        longest = len(f"{root}/{_prefix()}") + _TOKEN + len("/") + _TOKEN
        if longest <= MAX_SOCKET_DIRECTORY and os.access(root, os.W_OK) and keeps_names(Path(root)):
            return _make_below(root)
    raise Failure(
        f"no place for a socket directory of at most {MAX_SOCKET_DIRECTORY} characters: "
        f"{tempfile.gettempdir()} and /tmp cannot be used",
        next_step="set TMPDIR to a short path that you can write to and other users cannot",
    )


def keeps_names(folder: Path) -> bool:
    """Tells whether no other user can give a name in this folder, or above it, to something else."""
    # The owner of "/": root, also where a container's user namespace has another name for it.
    trusted = {0, os.geteuid(), Path("/").stat().st_uid}
    for part in (folder, *folder.parents):
        found = part.stat()
        open_to_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in trusted or open_to_others:
            return False
    return True


def _make_below(root: str) -> Path:
    for base in _own_bases(root):
        try:
            return Path(tempfile.mkdtemp(prefix="", dir=base))
        except FileNotFoundError:
            continue  # somebody tidies up
    return Path(tempfile.mkdtemp(prefix="", dir=tempfile.mkdtemp(prefix=_prefix(), dir=root)))


def _own_bases(root: str) -> Iterator[Path]:
    for path in sorted(Path(root).glob(f"{_prefix()}*")):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700:
            yield path


def _roots() -> list[str]:
    # Real paths: Kineto's client ends its process over an answer whose path is not the very string it was given.
    return list(dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), "/tmp"))))  # noqa: S108 - mkdtemp is private


def _prefix() -> str:
    return f"fp{os.geteuid()}-"
