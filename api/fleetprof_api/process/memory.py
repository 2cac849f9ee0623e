"""The limits of this process's memory: its container's control group, and what the machine has left.

Guarantees: never raises; what cannot be read is None. The agent, on Python 3.9, has a reader of its own that also looks
at the groups above. Sources: cgroups v2 (memory.max) and v1 (memory.limit_in_bytes), proc(5) (meminfo).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

CONTAINER_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
MEMINFO: Final = Path("/proc/meminfo")
# Version 1 says "no limit" with the largest number of pages.
_NO_LIMIT_BYTES: Final = 1 << 60


def container_limit(files: Sequence[Path] = CONTAINER_LIMITS) -> int | None:
    """The container's memory limit in bytes; None where there is none."""
    for file in files:
        try:
            text = file.read_text().strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal() and int(text) < _NO_LIMIT_BYTES:
            return int(text)
    return None


def machine_memory(meminfo: Path = MEMINFO) -> tuple[int | None, int | None]:
    """(available, total) bytes of the machine."""
    found: dict[str, int] = {}
    try:
        with meminfo.open() as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    found[name] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None, None
    return found.get("MemAvailable"), found.get("MemTotal")
