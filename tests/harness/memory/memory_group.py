"""A control group with a limit of memory, for jobs that must not be killed in it: version 1 or 2, made by root."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))


@dataclass(frozen=True)
class MemoryGroup:
    """One group. Words that start with `entering()` run in it."""

    folder: Path
    version: int

    def entering(self) -> list[str]:
        """A command that enters the group and becomes what follows it."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]

    def kills(self) -> int:
        """The number of processes that the kernel has ended here for want of memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        counts = dict(line.split() for line in (self.folder / name).read_text().splitlines())
        return int(counts["oom_kill"])

    def peak_bytes(self) -> int:
        """The most that was in use."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return int((self.folder / name).read_text())


def find_obstacle() -> str:
    """The reason why no group can be made here; "" when one can."""
    if os.geteuid() != 0:
        return "control groups are made by root"
    return "" if _find_root() else "no hierarchy with the memory controller can be written to here"


@contextlib.contextmanager
def memory_group(name: str, limit_bytes: int) -> Iterator[MemoryGroup]:
    """A group that is there until its last process has ended."""
    found = _find_root()
    assert found is not None
    root, version = found
    folder = root / f"fleetprof-{name}-{os.getpid()}"
    folder.mkdir()
    try:
        limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
        (folder / limit).write_text(str(limit_bytes))
        yield MemoryGroup(folder, version)
    finally:
        for _ in range(600):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def _find_root() -> tuple[Path, int] | None:
    for root, version in ((ROOTS[0], 1), (ROOTS[1], 2)):
        own = root / "cgroup.subtree_control"
        there = (
            (root / "memory.limit_in_bytes").exists() if version == 1 else own.exists() and "memory" in own.read_text()
        )
        if there and os.access(root, os.W_OK):
            return root, version
    return None
