"""Files in a directory that a trainer can write: it may put links, pipes, devices or files of others there at any time.

Guarantees: a name is looked up in an open folder, and never followed: no link leads out, none is written through; what
is read is a regular file with one name, and opening it waits for nobody; what is written appears whole or not at all,
under a temporary name that was nobody's before.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fleetprof_api.errors import FleetprofError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnexpectedFile(FleetprofError):
    """Something else than the file that was expected; the message says what."""


@contextmanager
def open_folder(path: str | Path, *, within: int | None = None) -> Iterator[int]:
    """The folder itself, until the block ends. Raises OSError, also for a link to a folder."""
    descriptor = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(name: str, folder: int, owner: int | None = None) -> int:
    """A descriptor to read a file that another party wrote. Raises Planted, FileNotFoundError, OSError.

    `owner`: the user who must have written it; None where that is not known. What is not such a file is not even
    opened: a device may do something then.
    """
    with _hold(name, folder) as found:
        status = os.fstat(found)
        problem = ""
        if not stat.S_ISREG(status.st_mode):
            problem = "is not a regular file"
        elif status.st_nlink != 1:
            problem = f"has {status.st_nlink} names (hard links)"
        elif owner is not None and status.st_uid != owner:
            problem = f"belongs to user {status.st_uid}, the process runs as user {owner}"
        if problem:
            raise UnexpectedFile(f"{name} {problem}")
        try:
            return os.open(_path_of(found), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except BlockingIOError:
            raise UnexpectedFile(f"{name} is held back by a lease") from None


def make_folder(name: str, folder: int, mode: int) -> bool:
    """Makes a folder, or keeps the one that is there; True when it is new. A link or a file in its place goes."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def write_whole(name: str, folder: int, data: bytes, mode: int = 0o644) -> None:
    """Writes a file in the place of whatever has the name, unless our own of that content does. Raises OSError."""
    if _holds(name, folder, data):
        return
    temporary = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _holds(name: str, folder: int, data: bytes) -> bool:
    try:
        descriptor = open_regular(name, folder, os.geteuid())
    except (UnexpectedFile, OSError):
        return False
    with os.fdopen(descriptor, "rb") as file:
        return os.fstat(descriptor).st_size == len(data) and file.read(len(data) + 1) == data


def set_mode(path: Path, mode: int) -> None:
    """chmod of exactly what bears the name, never of what a link leads to. Raises OSError."""
    with _hold(path) as found:
        if stat.S_ISLNK(os.fstat(found).st_mode):
            raise OSError(f"{path} is a link")
        _path_of(found).chmod(mode)


@contextmanager
def _hold(name: str | Path, folder: int | None = None) -> Iterator[int]:
    """Opens what bears the name, a link itself too, without opening it."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _path_of(descriptor: int) -> Path:
    """Leads to what is held, whatever bears its name by now (proc(5))."""
    return Path(f"/proc/self/fd/{descriptor}")
