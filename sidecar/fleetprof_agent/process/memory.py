"""The memory of a process, the memory that it may still take, and giving back what its allocator keeps.

Guarantees: nothing is raised; what cannot be read does not count. `headroom_bytes` takes a tenth of a millisecond for
each limited control group and twice that for the machine, so it is read every ten seconds outside a capture.
Sources: proc(5), cgroups(7), the kernel's admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import ctypes
import os

from fleetprof_agent.errors import pass_on
from fleetprof_agent.process.control_groups import find_groups, read_text

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
NO_LIMIT_BYTES = 1 << 60
# Version 2, then version 1: what limits, what is used, and what of it is page cache.
_FILES = (
    (("memory.max", "memory.high"), "memory.current", "inactive_file ", "active_file "),
    (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file ", "total_active_file "),
)


class ProcessMemory:
    """The memory of one process, by default of the caller. Limits may change at any time, where they lie does not."""

    def __init__(self, pid: int | None = None, proc: str = "/proc") -> None:
        self._proc = proc
        self._own = "%s/%s" % (proc, "self" if pid is None else pid)
        self._groups = find_groups("memory", (_FILES[0][0][0], _FILES[1][0][0]), self._own, proc)
        limits = read_text(self._own + "/limits")
        self._most_space = _find_number(limits, "Max address space")
        self._most_data = _find_number(limits, "Max data size")

    def resident_bytes(self) -> int:
        """The bytes that it has in memory; 0 when that cannot be read."""
        return self._pages(1) * PAGE_BYTES

    def peak_bytes(self) -> int:
        """The most that it ever had in memory; 0 when that cannot be read."""
        return _find_number(read_text(self._own + "/status"), "VmHWM:") * 1024

    def headroom_bytes(self) -> int:
        """The bytes that it may take before it reaches the first of its limits, at least 1; 0: no limit can be read.

        Page cache counts as free where the kernel would reclaim it first: what is inactive, and half of the rest.
        """
        left = [room for room in (_room_in(*group) for group in self._groups) if room is not None]
        for most, column in ((self._most_space, 0), (self._most_data, 5)):
            if most and (pages := self._pages(column)):
                left.append(most - pages * PAGE_BYTES)
        available = _find_number(read_text(self._proc + "/meminfo"), "MemAvailable:") * 1024
        if available:
            left.append(available)
        return max(1, min(left)) if left else 0

    def _pages(self, column: int) -> int:
        words = read_text(self._own + "/statm").split()
        return int(words[column]) if len(words) > column and words[column].isdigit() else 0


def give_back() -> bool:
    """Has glibc return free memory to the kernel. False where the C library cannot (musl), or nothing was returned.

    Never in a forked child: it looks the C library up.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError) as error:
        pass_on(error)
        return False


def _room_in(folder: str, version: int) -> int | None:
    """The memory that a control group may still take; None without a limit."""
    limits, used, inactive, active = _FILES[version]
    found = [int(text) for text in (read_text(folder + "/" + name).strip() for name in limits) if text.isdigit()]
    if not found or min(found) >= NO_LIMIT_BYTES:
        return None
    taken = read_text(folder + "/" + used).strip()
    if not taken.isdigit():
        return None
    stat = "\n" + read_text(folder + "/memory.stat")
    cache = _find_number(stat, "\n" + inactive) + _find_number(stat, "\n" + active) // 2
    return min(found) - max(0, int(taken) - cache)


def _find_number(text: str, name: str) -> int:
    """The number after `name`; 0 without one ("unlimited")."""
    _, _, rest = text.partition(name)
    words = rest[:64].split(None, 1)
    return int(words[0]) if words and words[0].isdigit() else 0
