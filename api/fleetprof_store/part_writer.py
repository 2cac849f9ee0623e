"""One part of an upload on its way to the directory store's disk: kept whole and checked, or not at all."""

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

from fleetprof_api.errors import FleetprofError

from fleetprof_store.checks import MAX_PARTS
from fleetprof_store.disk import create, disk_errors
from fleetprof_store.signed_parts import GrantRefused, SignedPart


class PartRefused(FleetprofError):
    """A PUT whose bytes are not those that were granted."""


class PartWriter:
    """Takes one part's bytes to disk. `finish` keeps them only when size and checksum are those that were granted."""

    def __init__(self, part: SignedPart, folder: Path) -> None:
        self._part = part
        self._final = part_path(folder, part.number)
        self._path = folder / f"{self._final.name}.{secrets.token_hex(4)}.tmp"
        self._file = create(self._path)
        self._digest = hashlib.sha256()
        self._size_bytes = 0

    def write(self, data: bytes) -> None:
        """Adds bytes. Raises PartRefused when there are more than granted, StoreError when the disk refuses."""
        self._size_bytes += len(data)
        if self._size_bytes > self._part.size_bytes:
            raise PartRefused(f"more than the granted {self._part.size_bytes} bytes came")
        self._digest.update(data)
        with disk_errors(self._path):
            self._file.write(data)

    def finish(self) -> str:
        """Keeps the part and returns its ETag. Raises PartRefused when size or checksum differ."""
        if self._size_bytes != self._part.size_bytes:
            raise PartRefused(f"{self._size_bytes} bytes came, {self._part.size_bytes} were granted")
        if self._digest.digest() != self._part.sha256:
            raise PartRefused("the bytes do not have the granted SHA-256")
        with disk_errors(self._path):
            self._file.close()
            self._path.replace(self._final)
        return f'"{self._part.sha256.hex()}"'

    def discard(self) -> None:
        """Removes what was not kept; after `finish` it does nothing."""
        with suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


def part_path(folder: Path, number: int) -> Path:
    """The path of a part in the folder of its upload. Raises GrantRefused."""
    if not 1 <= number <= MAX_PARTS:
        raise GrantRefused(f"part numbers are 1 to {MAX_PARTS}, got {number}")
    return folder / f"part-{number:05d}"
