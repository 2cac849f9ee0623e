"""Reads from the kernel the state of a process's main thread, and its children.

Guarantees: raises nothing; needs no privilege; "" and None where the process cannot be seen. Source: proc(5).
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetprof_api.plain_text import make_printable
from fleetprof_api.stacks import ChildProcess

MOST_CHILDREN: Final = 256
_TICK_NS: Final = 10**9 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class KernelView:
    """`state` as in ProcessStacks; `ran_ns`: processor time of the main thread so far."""

    state: str = ""
    ran_ns: int | None = None


def look_at_main_thread(pid: int, proc: Path = Path("/proc")) -> KernelView:
    """The main thread of a visible process."""
    fields = _read_stat(proc / str(pid) / "task" / str(pid) / "stat") if pid > 0 else None
    if fields is None:
        return KernelView()
    return KernelView(fields[0], (int(fields[11]) + int(fields[12])) * _TICK_NS)


def find_children(pid: int, proc: Path = Path("/proc")) -> list[ChildProcess]:
    """The children of all its threads."""
    found: list[ChildProcess] = []
    try:
        tasks = list((proc / str(pid) / "task").iterdir()) if pid > 0 else []
    except OSError:
        return found
    for task in tasks:
        try:
            pids = (task / "children").read_text().split()
        except OSError:  # it has just ended, or the kernel does not tell
            continue
        for child in pids[: MOST_CHILDREN - len(found)]:
            fields = _read_stat(proc / child / "stat")
            if fields is not None:
                found.append(ChildProcess(pid=int(child), name=_read_name(proc / child / "comm"), state=fields[0]))
    return found


def _read_stat(path: Path) -> list[str] | None:
    """The fields from the state on: the name before it may hold anything."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > 12 else None


def _read_name(path: Path) -> str:
    try:
        return make_printable(path.read_text(errors="replace").strip()[:32])
    except OSError:
        return ""
