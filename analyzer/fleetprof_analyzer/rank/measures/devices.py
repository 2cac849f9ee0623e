"""The work of a rank by device, each row with its class: what every measure of a GPU begins with.

Guarantees: pure; every device row belongs to exactly one device; more devices than any machine has are a malformed
trace, and are taken as one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.window.unrecorded import NOTHING, Lost, Unrecorded
from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel
from fleetprof_analyzer.trace.intervals import Union, join, union
from fleetprof_analyzer.trace.naming import used_names
from fleetprof_analyzer.trace.trace import Category, Rows, Trace

_MOST_DEVICES: Final = 64
Classes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """The rows of one device over all its streams, at least one, and their classes (`WorkClass`), shape (n,).

    A CPU-only rank's host is taken the same way (`breakdown.find_host_work`), and may have none.
    """

    device: str
    rows: Rows
    classes: Classes
    unrecorded: Unrecorded = NOTHING

    def union_of(self, *classes: WorkClass) -> Union:
        """The spans in which work of one of these classes ran."""
        chosen = np.isin(self.classes, classes)
        start = self.rows.start_ns[chosen]
        return union(start, start + self.rows.duration_ns[chosen])

    def busy(self) -> Union:
        """The spans in which anything ran."""
        return join(self.union_of(WorkClass.COMPUTE, WorkClass.COMMUNICATION), self.union_of(WorkClass.MEMORY))

    def not_idle(self) -> Union:
        """The spans in which anything ran, or nothing was recorded."""
        return join(self.busy(), self.unrecorded.times)

    def unrecorded_ns(self, *lost: Lost) -> int:
        """The time between its first start and its last end that was not recorded, for one of these reasons."""
        if len(self.rows) == 0:
            return 0
        return self.unrecorded.within(int(self.rows.start_ns.min()), int(self.rows.end_ns.max()), *lost)


def split_devices(trace: Trace) -> list[DeviceWork]:
    """One entry per device with work, in the order of their names; empty for a CPU-only rank."""
    rows = trace.rows.select(trace.rows.on_device)
    if len(rows) == 0:
        return []
    names, owner = trace.owners(rows)
    used = np.flatnonzero(np.bincount(owner)).tolist()
    if len(used) > _MOST_DEVICES:
        return [DeviceWork("all", rows, _classify(rows, trace))]
    classes = _classify(rows, trace)
    if len(used) == 1:
        return [DeviceWork(names[used[0]], rows, classes)]
    return [DeviceWork(names[at], rows.select(owner == at), classes[owner == at]) for at in used]


def _classify(rows: Rows, trace: Trace) -> Classes:
    by_name = np.zeros(len(trace.names), np.int8)
    for index in used_names(rows):
        by_name[index] = classify_kernel(trace.names[index], trace.kernel_classes)
    return np.where(rows.category == Category.KERNEL, by_name[rows.name], np.int8(WorkClass.MEMORY))
