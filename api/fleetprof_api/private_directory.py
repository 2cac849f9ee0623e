"""A directory of this user alone: what lies in it was put there by this user (or root), and by nobody else.

Guarantees: owner and mode are those of the directory that is used, however its name is given away meanwhile: it is
opened once, looked at, and its files are reached through the open descriptor. So a path in it is short as well, and
fits into a socket address (108 bytes) where the directory's own name does not. Source: proc(5), unix(7), openat(2).
"""

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fleetprof_api.errors import FleetprofError

_MOST_BYTES: Final = 1 << 20


class NotPrivate(FleetprofError, OSError):
    """Others can read or change what is there, so it proves nothing; the message says what to do."""


class PrivateDirectory:
    """An open directory; use it with `with`. Raises NotPrivate, and OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._check(os.fstat(self._descriptor))
        except NotPrivate:
            self.close()
            raise

    def _check(self, found: os.stat_result) -> None:
        if found.st_uid != os.geteuid():
            raise NotPrivate(f"{str(self.path)!r} belongs to another user (uid {found.st_uid}); use one of your own")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise NotPrivate(
                f"{str(self.path)!r} is open to other users (mode {stat.S_IMODE(found.st_mode):04o}); "
                "close it (chmod 700), after a look at who could have changed what is in it"
            )

    def place(self, name: str) -> str:
        """A short path of something in it, good in this process while the directory is open."""
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def read(self, name: str) -> bytes:
        """A small file of it. Raises OSError."""
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise NotPrivate(f"{name!r} in {str(self.path)!r} is not a file of your own")
            return file.read(_MOST_BYTES)

    def socket(self, name: str) -> str:
        """The path of a socket of this user. Raises NotPrivate, and OSError when it is not there."""
        found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise NotPrivate(f"{name!r} in {str(self.path)!r} is not a socket of your own")
        return self.place(name)

    def close(self) -> None:
        """May be repeated; paths from `place` and `socket` are good no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
