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
    """`state` and `waits_in` as in ProcessStacks; `ran_ns`: the time so far in which it ran, or was ready to run."""

    state: str = ""
    waits_in: str = ""
    ran_ns: int | None = None


def look_at_main_thread(pid: int, proc: Path = Path("/proc")) -> KernelView:
    """The main thread of a visible process."""
    task = proc / str(pid) / "task" / str(pid)
    fields = _read_stat(task / "stat") if pid > 0 else None
    if fields is None:
        return KernelView()
    return KernelView(fields[0], _read_wait(task), _read_schedule(task, (int(fields[11]) + int(fields[12])) * _TICK_NS))


def find_children(pid: int, proc: Path = Path("/proc")) -> list[ChildProcess] | None:
    """The children of all its threads; None where the kernel does not tell of any of them."""
    found: list[ChildProcess] | None = None
    try:
        tasks = list((proc / str(pid) / "task").iterdir()) if pid > 0 else []
    except OSError:
        return None
    for task in tasks:
        try:
            pids = (task / "children").read_text().split()
        except OSError:  # it has just ended, or the kernel does not tell
            continue
        found = [] if found is None else found
        for child in pids[: MOST_CHILDREN - len(found)]:
            fields = _read_stat(proc / child / "stat")
            if fields is not None:
                name, waits_in = _read_name(proc / child / "comm"), _read_wait(proc / child)
                found.append(ChildProcess(pid=int(child), name=name, state=fields[0], waits_in=waits_in))
    return found


def _read_stat(path: Path) -> list[str] | None:
    """The fields from the state on: the name before it may hold anything."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > 12 else None


def _read_schedule(task: Path, ran_ns: int) -> int:
    """Its time on a core and in line for one, so that a busy machine makes nobody look idle; else what is given."""
    try:
        ran, waited, *_ = (task / "schedstat").read_text().split()
        return int(ran) + int(waited)
    except (OSError, ValueError):  # a kernel without CONFIG_SCHED_INFO
        return ran_ns


def _read_wait(folder: Path) -> str:
    try:
        text = make_printable((folder / "wchan").read_text(errors="replace").strip()[:64])
    except OSError:
        return ""
    return "" if text == "0" else text  # it runs, or the kernel tells nobody


def _read_name(path: Path) -> str:
    try:
        return make_printable(path.read_text(errors="replace").strip()[:32])
    except OSError:
        return ""
