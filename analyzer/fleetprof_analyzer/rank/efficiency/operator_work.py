"""The work of operators by name: time, operations and bytes, for a roofline (docs/measures.md#roofline).

Guarantees: pure; time is that of the device's work that was launched inside an operator, of the operator itself where
the rank has no device.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.efficiency import OperatorAmounts

from fleetprof_analyzer.rank.efficiency.operator_flops import OperatorFlops
from fleetprof_analyzer.rank.efficiency.traffic import count_traffic, find_outer
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows, Trace

_MOST: Final = 16


def measure_operator_work(trace: Trace, inside: Rows, counted: OperatorFlops, count: int) -> list[OperatorAmounts]:
    """Means over `count` iterations, the most time first. `inside`: their rows; `counted`: operations of these."""
    found = count_traffic(inside, trace.names, trace.inputs)
    is_known = found.moved_bytes >= 0
    at, moved = found.at[is_known], found.moved_bytes[is_known]
    if not len(at):
        return []
    work_ns = _measure_work(trace, inside, at)
    flops = np.zeros(len(at), np.int64)
    owner = find_outer(inside, inside.place[counted.inner], inside.start_ns[counted.inner], at)
    is_owned = (owner >= 0) & (counted.flops > 0)
    np.add.at(flops, owner[is_owned], counted.flops[is_owned])
    names, kind = np.unique(inside.name[at], return_inverse=True)
    sums = np.zeros((len(names), 4), np.int64)
    np.add.at(sums, kind, np.stack((np.ones(len(at), np.int64), flops, moved, work_ns), axis=1))
    order = np.argsort(-sums[:, 3], kind="stable")[:_MOST].tolist()
    return [
        OperatorAmounts(
            name=trace.names[names[number]], calls=round(calls / count), flops=operations // count,
            moved_bytes=moved_bytes // count, work_ns=time_ns // count,
        )
        for number in order
        for calls, operations, moved_bytes, time_ns in [sums[number].tolist()]
    ]  # fmt: skip


def _measure_work(trace: Trace, inside: Rows, at: Int64s) -> Int64s:
    work = trace.rows.select(trace.rows.on_device)
    if not len(work):
        return inside.duration_ns[at]
    calls = np.flatnonzero((inside.category == Category.RUNTIME) & (inside.correlation >= 0))
    owner = find_outer(inside, inside.place[calls], inside.start_ns[calls], at)
    calls, owner = calls[owner >= 0], owner[owner >= 0]
    order = np.argsort(inside.correlation[calls], kind="stable")
    numbers, owner = inside.correlation[calls[order]], owner[order]
    place = np.searchsorted(numbers, work.correlation)
    hit = place < len(numbers)
    hit[hit] = numbers[place[hit]] == work.correlation[hit]
    work_ns = np.zeros(len(at), np.int64)
    np.add.at(work_ns, owner[place[hit]], work.duration_ns[hit])
    return work_ns
