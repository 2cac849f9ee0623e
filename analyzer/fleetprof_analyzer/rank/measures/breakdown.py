"""The time of a rank by its use: compute, communication, memory, idle (docs/measures.md#time).

On a GPU, work is what ran on the device, over all its streams. On a CPU-only rank, work is the operators that the host
ran and its collective ranges. Guarantees: span = compute + exposed_communication + exposed_memory + idle +
unrecorded, to the nanosecond, with what was not recorded as a part of its own.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from fleetprof_api.report.report import Iteration, TimeBreakdown

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.window.unrecorded import Lost
from fleetprof_analyzer.trace.classes import WorkClass, is_host_annotation, is_host_communication
from fleetprof_analyzer.trace.intervals import covered, covered_length, join, length, union
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.trace import Category, Int64s, Trace


def measure_device(work: DeviceWork) -> TimeBreakdown:
    """One device's time, or one host's, from its first start to its last end."""
    rows = work.rows
    if len(rows) == 0:
        return TimeBreakdown()
    compute, communication = work.union_of(WorkClass.COMPUTE), work.union_of(WorkClass.COMMUNICATION)
    with_communication = join(compute, communication)
    busy = join(with_communication, work.union_of(WorkClass.MEMORY))
    span = int(rows.end_ns.max() - rows.start_ns.min()) - work.unrecorded_ns(Lost.PAUSED)
    unrecorded = work.unrecorded_ns(Lost.WORK_MISSING, Lost.NO_DEVICE_ROWS)
    exposed = length(with_communication) - length(compute)
    return TimeBreakdown(
        span=span,
        compute=length(compute),
        overlapped_communication=length(communication) - exposed,
        exposed_communication=exposed,
        exposed_memory=length(busy) - length(with_communication),
        idle=span - length(busy) - unrecorded,
        unrecorded=unrecorded,
    )


def measure_before(works: Sequence[DeviceWork], at: Int64s) -> Int64s:
    """The amount of compute, communication, either, busy and unrecorded time is before each time; shape (5, *at.shape).

    Summed over `works`: the rank's devices, or its host.
    """
    totals = np.zeros((5, at.size), np.int64)
    for work in works:
        compute, communication = work.union_of(WorkClass.COMPUTE), work.union_of(WorkClass.COMMUNICATION)
        both = join(compute, communication)
        unions = (compute, communication, both, join(both, work.union_of(WorkClass.MEMORY)), work.unrecorded.times)
        totals += np.array([covered_length(at.ravel(), each) for each in unions])
    return totals.reshape(5, *at.shape)


def measure_iterations(before: Int64s, devices: int, iterations: Sequence[Iteration]) -> list[Iteration]:
    """The iterations with the time within each: `before`, shape (5, iterations, m), at bounds from start to end."""
    if not devices or not iterations:
        return list(iterations)
    totals = before[:, :, -1] - before[:, :, 0]
    return [
        msgspec.structs.replace(
            iteration,
            time_ns=TimeBreakdown(
                span=iteration.duration_ns * devices,
                compute=computes,
                overlapped_communication=computes + communicates - either,
                exposed_communication=either - computes,
                exposed_memory=busy - either,
                idle=iteration.duration_ns * devices - busy - unrecorded,
                unrecorded=unrecorded,
            ),
        )
        for iteration, (computes, communicates, either, busy, unrecorded) in zip(
            iterations, totals.T.tolist(), strict=True
        )
    ]


def find_host_work(trace: Trace) -> DeviceWork:
    """The CPU equivalents: compute is the union of operators, communication that of collective ranges."""
    rows = trace.rows.select(~trace.rows.on_device)
    communicates = where_name(rows, trace.names, is_host_communication)
    annotates = where_name(rows, trace.names, is_host_annotation)
    operates = (rows.category == Category.OPERATOR) & ~communicates & ~annotates
    # What a collective runs inside itself (copies, divisions on its own thread) is part of the collective.
    order = np.argsort(rows.place, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(rows.place[order])) + 1):
        collective = here[communicates[here]]
        if len(collective):
            ranges = union(rows.start_ns[collective], rows.end_ns[collective])
            operates[here] &= ~covered(rows.start_ns[here], ranges)
    works = operates | communicates
    classes = np.where(communicates, WorkClass.COMMUNICATION, WorkClass.COMPUTE).astype(np.int8)
    return DeviceWork("host", rows.select(works), classes[works])


def add(parts: list[TimeBreakdown]) -> TimeBreakdown:
    """Sums breakdowns part by part; the sum adds up as each of them does."""
    return TimeBreakdown(
        **{name: sum(getattr(part, name) for part in parts) for name in TimeBreakdown.__struct_fields__}
    )
