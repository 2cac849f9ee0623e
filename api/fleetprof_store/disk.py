"""Files and folders of the directory store: for their user alone, replaced whole; errors say what to do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fleetprof_store.base import StoreError


def make_folders(path: Path) -> None:
    """Makes the missing ones; with `parents`, Python's mkdir makes those above by the umask alone."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_folders(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def create(path: Path) -> IO[bytes]:
    """Opens a new file, which no symbolic link leads elsewhere."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb")


def sync(file: IO[bytes]) -> None:
    """Returns when the bytes are on the disk."""
    file.flush()
    os.fsync(file.fileno())


def move(source: Path, target: Path) -> None:
    """Renames over `target`; a folder that is deleted meanwhile (it was empty) is made again."""
    for _ in range(3):
        make_folders(target.parent)
        try:
            source.replace(target)
        except FileNotFoundError:
            if not source.exists():
                raise
            continue
        return
    raise StoreError(f"{target.parent} vanishes while it is written to; try again", retryable=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """The operating system's errors as StoreError, with the path and what to do; an absent file stays one."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                raise StoreError(f"{path}: {reason}; free some space on its volume", retryable=True) from None
            case errno.EACCES | errno.EPERM | errno.EROFS:
                raise StoreError(f"{path}: {reason}; make it writable for this user", retryable=False) from None
            case _:
                retryable = error.errno in (errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
                raise StoreError(f"{path}: {reason}", retryable=retryable) from None
