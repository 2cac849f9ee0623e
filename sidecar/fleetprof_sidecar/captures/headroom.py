"""Tells if a recording fits into memory and disk: the last look before its order is placed, while nothing has begun.

Guarantees: a recording of unknown size is refused only if memory or disk are at their floor already; what other ranks
here were ordered to write counts as used, so that as many ranks of a pod record as fit.
"""

import os
from pathlib import Path
from typing import Final

from fleetprof_api.ledger import Reason
from fleetprof_api.quantities import duration, size
from fleetprof_api.report.recording import FLOOR_BYTES

from fleetprof_sidecar.capture.events import OrderRejected
from fleetprof_sidecar.capture.process_capture import Terms
from fleetprof_sidecar.delivery.spool import FREE_MARGIN_BYTES
from fleetprof_sidecar.processes.views import ProcessView

# The compressed copy is there before the trace is deleted (about 15 to 1).
_COPY_SHARE: Final = 8
# Of the pod's limit: what else its containers may have written since, which nobody counts but the kubelet.
_LIMIT_SHARE: Final = (3, 4)


class Disk:
    """The volume of traces and spool. `limit_bytes`: what the pod may take in all; 0: nobody says."""

    def __init__(self, traces: Path, spool: Path, limit_bytes: int = 0) -> None:
        self._traces = traces
        self._spool = spool
        self._limit_bytes = limit_bytes

    def room_bytes(self) -> int:
        """The bytes that may still be written, less what is left to everyone else."""
        rooms = [room for room, _ in self._volumes()]
        if self._limit_bytes:
            used = sum(_used_bytes(folder) for folder in (self._traces, self._spool))
            rooms.append(self._limit_bytes * _LIMIT_SHARE[0] // _LIMIT_SHARE[1] - used)
        return max(0, min(rooms)) if rooms else 0

    def scarcest(self) -> Path:
        """The folder whose volume has the least room."""
        return min(self._volumes(), default=(0, self._traces))[1]

    def _volumes(self) -> list[tuple[int, Path]]:
        """(what may still be written, folder)."""
        rooms = []
        for folder in (self._traces, self._spool):
            try:
                volume = os.statvfs(folder)
            except OSError:
                continue  # it appears with the first trace
            rooms.append((volume.f_bavail * volume.f_frsize - FREE_MARGIN_BYTES, folder))
        return rooms

    @property
    def limit_bytes(self) -> int:
        """The bytes that the pod may take in all; 0: nobody says."""
        return self._limit_bytes


def disk_need_bytes(terms: Terms) -> int:
    """The most that a capture will have on disk; 0: not known."""
    return terms.trace_needed_bytes + terms.trace_needed_bytes // _COPY_SHARE


def find_shortage(
    terms: Terms, view: ProcessView, disk: Disk, promised_bytes: int, now_unix_ns: int
) -> OrderRejected | None:
    """The reason why a recording does not fit. `promised_bytes`: disk that orders placed here before will need."""
    left = view.memory_headroom_bytes
    needed = terms.memory_needed_bytes * terms.ranks_here + FLOOR_BYTES
    if left and left < needed:
        text = (
            f"the process may take {size(left)} more, and recording {_say_window(terms)} needs {size(needed)}"
            f"{_say_ranks(terms)}; capture fewer iterations or less of collect, or raise its memory limit"
        )
        return OrderRejected(Reason.NO_MEMORY, text, now_unix_ns)
    room, wanted = disk.room_bytes() - promised_bytes, disk_need_bytes(terms)
    if room <= 0 or room < wanted:
        limit = f" (the pod's limit is {size(disk.limit_bytes)})" if disk.limit_bytes else ""
        others = f", {size(promised_bytes)} of it for other ranks" if promised_bytes else ""
        needs = f"the trace of {_say_window(terms)} needs {size(wanted)}" if wanted else "a trace needs some"
        text = (
            f"there are {size(max(0, room + promised_bytes))} left on the volume of {disk.scarcest()}{limit}"
            f"{others}, where {size(FREE_MARGIN_BYTES)} stay free for others, and {needs}; make room, or capture "
            "fewer iterations or ranks"
        )
        return OrderRejected(Reason.DISK_FULL, text, now_unix_ns)
    return None


def _say_ranks(terms: Terms) -> str:
    return f" for the {terms.ranks_here} ranks here" if terms.ranks_here > 1 else ""


def _say_window(terms: Terms) -> str:
    if terms.first_step is not None:
        return f"{terms.iterations} iteration{'s' * (terms.iterations != 1)}"
    return duration(terms.duration_ns) if terms.duration_ns else "the window"


def _used_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue
    return total
