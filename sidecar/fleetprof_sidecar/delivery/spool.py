"""The sidecar's private disk: compressed files on their way to the store, and the journal of all captures.

    <spool>/sidecar-id
            lock
            journal/<capture>-r<rank>-<process>.json
            files/<capture>-r<rank>-<process>.trace.json.gz, ….samples.json.gz, ….summary.json.gz

Guarantees: a journal entry is replaced whole or not at all, so a kill at any moment leaves the state before or after;
the files never take more than the limit, nor the volume's last bytes; one sidecar per spool (a lock that ends with the
process). Names are made of checked parts only.
"""

import fcntl
import gzip
import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.errors import FleetprofError
from fleetprof_api.ledger import Reason

from fleetprof_sidecar.capture.process_capture import ProcessCapture, StoredFile, check_capture_id
from fleetprof_sidecar.children.compress import PART_BYTES

# Left to everyone else on the volume: a full disk would harm the trainer beside us.
FREE_MARGIN_BYTES: Final = 64 << 20


class SpoolBusy(FleetprofError):
    """Another sidecar works on this spool."""


class NoRoom(FleetprofError):
    """A file does not fit. `reason`: SpoolFull (our limit) or DiskFull (the volume)."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def file_stem(capture: ProcessCapture) -> str:
    """The name of everything that this capture on this process has in the spool."""
    process = hashlib.sha256(capture.terms.process_id.encode()).hexdigest()[:12]
    return f"{check_capture_id(capture.terms.capture_id)}-r{int(capture.terms.rank)}-{process}"


class Spool:
    """A directory as described above, locked for this process until `close`. Raises SpoolBusy, OSError."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self._limit_bytes = limit_bytes
        self._journal = path / "journal"
        self._files = path / "files"
        for folder in (path, self._journal, self._files):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise SpoolBusy(f"another sidecar uses the spool {path}; give each its own --spool") from None
        for leftover in [*self._files.glob("*.part"), *self._journal.glob("*.part")]:
            leftover.unlink(missing_ok=True)
        self.sidecar_id = self._read_id(path / "sidecar-id")

    def close(self) -> None:
        """Lets another sidecar have the spool. May be repeated."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -------------------------------------------------------- journal

    def record(self, capture: ProcessCapture) -> None:
        """Replaces the journal's entry of this capture. Raises OSError."""
        _replace(self._journal / f"{file_stem(capture)}.json", msgspec.json.encode(capture))

    def recorded(self) -> Iterator[ProcessCapture]:
        """Every journal entry; unreadable ones (another version, a damaged disk) are dropped."""
        decoder = msgspec.json.Decoder(ProcessCapture)
        for path in sorted(self._journal.glob("*.json")):
            try:
                capture = decoder.decode(path.read_bytes())
                usable = path.stem == file_stem(capture)
            except (OSError, ValueError):
                usable = False
            if usable:
                yield capture
            else:
                path.unlink(missing_ok=True)

    def forget(self, capture: ProcessCapture) -> None:
        """Deletes the journal's entry and every file of this capture."""
        self.drop_files(capture)
        (self._journal / f"{file_stem(capture)}.json").unlink(missing_ok=True)

    def drop_orphans(self, captures: list[ProcessCapture]) -> None:
        """Deletes files that belong to none of `captures`."""
        wanted = {file_stem(capture) for capture in captures}
        for path in self._files.iterdir():
            if path.name.split(".", 1)[0] not in wanted:
                path.unlink(missing_ok=True)

    # -------------------------------------------------------- files

    def path_of(self, name: str) -> Path:
        """The path of a file. Raises ValueError for a name that leads out of the spool."""
        if "/" in name or name.startswith("."):
            raise ValueError(f"{name!r} is not a file of the spool")
        return self._files / name

    def trace_path(self, capture: ProcessCapture) -> Path:
        """The path of the compressed trace."""
        return self._files / f"{file_stem(capture)}.trace.json.gz"

    def used_bytes(self) -> int:
        """The bytes of all files."""
        total = 0
        for entry in os.scandir(self._files):
            try:
                total += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
        return total

    def room_bytes(self) -> int:
        """The bytes that may still be written. Raises NoRoom with the limit that is reached."""
        spare = self._limit_bytes - self.used_bytes()
        if spare <= 0:
            raise NoRoom(Reason.SPOOL_FULL, f"the spool's {self._limit_bytes} bytes are taken; is the store away?")
        volume = os.statvfs(self._files)
        free = volume.f_bavail * volume.f_frsize - FREE_MARGIN_BYTES
        if free <= 0:
            raise NoRoom(Reason.DISK_FULL, f"less than {FREE_MARGIN_BYTES} bytes are free on the spool's volume")
        return min(spare, free)

    def write_samples(self, capture: ProcessCapture, document: bytes) -> StoredFile:
        """Compresses the samples document into the spool. Raises NoRoom, OSError."""
        return self._write(capture, "samples", gzip.compress(document, compresslevel=6, mtime=0))

    def write_summary(self, capture: ProcessCapture, data: bytes) -> StoredFile:
        """Writes the summary, compressed already, into the spool. Raises NoRoom, OSError."""
        return self._write(capture, "summary", data)

    def _write(self, capture: ProcessCapture, what: str, data: bytes) -> StoredFile:
        if len(data) > self.room_bytes():
            raise NoRoom(Reason.SPOOL_FULL, f"the spool has no room for the {what}")
        name = f"{file_stem(capture)}.{what}.json.gz"
        _replace(self._files / name, data)
        parts = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
        return StoredFile(
            name=name,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            part_sizes=[len(part) for part in parts],
            part_sha256=[hashlib.sha256(part).hexdigest() for part in parts],
        )

    def drop_files(self, capture: ProcessCapture) -> None:
        """Deletes this capture's files; the journal's entry stays."""
        for path in self._files.glob(f"{file_stem(capture)}.*"):
            path.unlink(missing_ok=True)

    @staticmethod
    def _read_id(path: Path) -> str:
        known = path.read_text().strip() if path.exists() else ""
        if not re.fullmatch(r"[0-9a-f]{32}", known):
            known = uuid.uuid4().hex
            _replace(path, known.encode())
        return known


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f"{path.name}.part")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
