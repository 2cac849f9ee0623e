"""Where the time of a rank went: compute, communication, memory, idle (docs/measures.md#time).

On a GPU, work is what ran on the device, over all its streams. On a CPU-only rank, work is the operators that the host
ran and its collective ranges. Guarantees: span = compute + exposed_communication + exposed_memory + idle, to the
nanosecond.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from fleetprof_api.report import DeviceTime, TimeBreakdown

from fleetprof_analyzer.classes import WorkClass, classify_kernel, is_host_annotation, is_host_communication
from fleetprof_analyzer.intervals import Union, covered, join, length, union
from fleetprof_analyzer.trace import Bools, Category, Rows, Trace

_MOST_DEVICES: Final = 256


def measure_devices(trace: Trace) -> list[DeviceTime]:
    """One entry per device with work, in the order of their names; empty for a CPU-only rank.

    More devices than any machine has are a malformed trace: they are measured as one.
    """
    rows = trace.rows.select(trace.rows.on_device)
    if len(rows) == 0:
        return []
    devices = np.array([place[0] for place in trace.places])
    device_of_row = devices[rows.place]
    if len(np.unique(device_of_row)) > _MOST_DEVICES:
        device_of_row = np.full(len(rows), "all")
    classes = _device_classes(rows, trace.names)
    result = []
    for device in sorted(set(device_of_row.tolist()), key=lambda name: (len(name), name)):
        here = device_of_row == device
        result.append(
            DeviceTime(device=device, time_ns=_measure(rows.select(here), classes[here]), work_count=int(here.sum()))
        )
    return result


def measure_host(trace: Trace) -> TimeBreakdown:
    """The CPU equivalents: compute is the union of operators, communication that of collective ranges."""
    rows = trace.rows.select(~trace.rows.on_device)
    communicates = _by_name(rows, trace.names, is_host_communication)
    annotates = _by_name(rows, trace.names, is_host_annotation)
    operates = (rows.category == Category.OPERATOR) & ~communicates & ~annotates
    # What a collective runs inside itself (copies, divisions on its own thread) is part of the collective.
    order = np.argsort(rows.place, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(rows.place[order])) + 1):
        collective = here[communicates[here]]
        if len(collective):
            ranges = union(rows.start_ns[collective], rows.end_ns[collective])
            operates[here] &= ~covered(rows.start_ns[here], ranges)
    works = operates | communicates
    classes = np.where(communicates, WorkClass.COMMUNICATION, WorkClass.COMPUTE)
    return _measure(rows.select(works), classes[works])


def add(parts: list[TimeBreakdown]) -> TimeBreakdown:
    """Sums breakdowns part by part; the sum adds up as each of them does."""
    return TimeBreakdown(
        **{name: sum(getattr(part, name) for part in parts) for name in TimeBreakdown.__struct_fields__}
    )


def _device_classes(rows: Rows, names: list[str]) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    by_name = np.zeros(len(names), np.int8)
    for index in np.unique(rows.name):
        by_name[index] = classify_kernel(names[index])
    return np.where(rows.category == Category.KERNEL, by_name[rows.name], np.int8(WorkClass.MEMORY))


def _by_name(rows: Rows, names: list[str], test: Callable[[str], bool]) -> Bools:
    chosen = np.zeros(len(names), np.bool_)
    for index in np.unique(rows.name):
        chosen[index] = test(names[index])
    return np.asarray(chosen[rows.name])


def _measure(rows: Rows, classes: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> TimeBreakdown:
    if len(rows) == 0:
        return TimeBreakdown()

    def union_of(work: WorkClass) -> Union:
        chosen = rows.select(np.asarray(classes == work))
        return union(chosen.start_ns, chosen.end_ns)

    compute, communication = union_of(WorkClass.COMPUTE), union_of(WorkClass.COMMUNICATION)
    with_communication = join(compute, communication)
    busy = join(with_communication, union_of(WorkClass.MEMORY))
    span = int(rows.end_ns.max() - rows.start_ns.min())
    exposed = length(with_communication) - length(compute)
    return TimeBreakdown(
        span=span,
        compute=length(compute),
        overlapped_communication=length(communication) - exposed,
        exposed_communication=exposed,
        exposed_memory=length(busy) - length(with_communication),
        idle=span - length(busy),
    )
