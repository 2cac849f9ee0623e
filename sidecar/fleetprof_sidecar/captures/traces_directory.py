"""The directory that a profiler writes traces into, as seen by scanning it: unfinished, finished, left over.

Guarantees: only regular files with the name of a trace of ours (`Profiler.read_name`) are looked at, read or deleted,
and no link is ever followed, not even in the directory's own place: the trainer can write here and may put anything
there (shared_files.py). A scan is one pass over the directory; nothing runs between scans.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetprof_sidecar.profiler import Profiler
from fleetprof_sidecar.sockets.kineto_profiler import KinetoProfiler
from fleetprof_sidecar.sockets.shared_files import open_folder, open_regular

# Files whose capture nobody knows (the spool was lost) are kept this long, in case they are not ours after all.
ORPHAN_AGE_NS: Final = 600_000_000_000


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file: the trace id that its name claims, and what `stat` says."""

    name: str
    stem: str
    pid: int
    finished: bool
    size_bytes: int
    modified_unix_ns: int


class TracesDirectory:
    """Reads and cleans one directory. An absent directory is an empty one."""

    def __init__(
        self,
        path: Path,
        fallback: Path = Path("/tmp"),  # noqa: S108 - where Kineto itself falls back to
        profiler: Profiler | None = None,
    ) -> None:
        self.path = path
        self.profiler: Profiler = profiler or KinetoProfiler()
        self._fallback = fallback

    def scan(self) -> list[TraceFile]:
        """All traces, finished ones first."""
        found = []
        try:
            with open_folder(self.path) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    match = self.profiler.read_name(entry.name)
                    if match is None:
                        continue
                    try:
                        if not entry.is_file(follow_symlinks=False):
                            continue
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # renamed in between: the next scan sees its new name
                    found.append(
                        TraceFile(
                            name=entry.name,
                            stem=match.stem,
                            pid=match.pid,
                            finished=match.is_finished,
                            size_bytes=status.st_size,
                            modified_unix_ns=status.st_mtime_ns,
                        )
                    )
        except OSError:  # it is absent, or something stands in its place
            return []
        return sorted(found, key=lambda file: (not file.finished, file.name))

    def delete(self, name: str) -> bool:
        """Deletes one trace; False when it cannot be (permissions). Raises ValueError for any other file's name."""
        if self.profiler.read_name(name) is None:
            raise ValueError(f"{name!r} is not the name of a trace")
        try:
            with open_folder(self.path) as folder:
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def open(self, name: str, owner: int | None) -> int:
        """A descriptor of one trace, written by the user `owner`, where that is known. Raises Planted, OSError."""
        if self.profiler.read_name(name) is None:
            raise ValueError(f"{name!r} is not the name of a trace")
        with open_folder(self.path) as folder:
            return open_regular(name, folder, owner)

    def find_stray(self, pid: int, since_unix_ns: int) -> str:
        """A sentence if the profiler wrote elsewhere than asked, or ""."""
        return self.profiler.find_stray(self._fallback, self.path, pid, since_unix_ns)
