"""The time by which each launch of a device's work could come earlier: the "maximum shift" (docs/measures.md#launches).

ML Board's bound on what launching by one graph could save: calls and their work move to the left together, until the
call meets the one before it, or the work meets the work before it. Guarantees: pure; no launch moves by less than the
one before it; each idle gap is taken away at most once, so that the last launch moves by no more than the idle time.
"""

import numpy as np

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.intervals import covered_length, union
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Int64s


def find_shifts(work: DeviceWork, calls: LaunchCalls) -> Int64s:
    """For each call that launched work of some length on this device, in the order of their starts: ns, shape (n,)."""
    position = calls.of(work.rows)
    chosen = (position >= 0) & (work.rows.duration_ns > 0)
    if not chosen.any():
        return np.zeros(0, np.int64)
    position, begins = position[chosen], work.rows.start_ns[chosen]
    order = order_by(position.astype(np.int64), begins)
    position, begins = position[order], begins[order]
    new = np.diff(position, prepend=-1) != 0
    launching, first_ns = calls.calls.take(position[new]), begins[new]
    order = order_by(launching.start_ns, launching.end_ns)
    launching, first_ns = launching.take(order), first_ns[order]
    gain = np.minimum(_gaps_before(work, first_ns), _free_before(launching.start_ns, launching.end_ns, calls))
    return np.asarray(np.cumsum(gain))


def _gaps_before(work: DeviceWork, first_ns: Int64s) -> Int64s:
    """The time that the device was idle before work that begins at `first_ns`; a gap that several end counts once."""
    starts, ends = work.not_idle()
    at = np.searchsorted(starts, first_ns)
    at[(at == len(starts)) | (starts[np.minimum(at, len(starts) - 1)] != first_ns)] = 0
    _, once = np.unique(at, return_index=True)
    gaps = np.zeros(len(first_ns), np.int64)
    gaps[once] = np.where(at[once] > 0, starts[at[once]] - ends[at[once] - 1], 0)
    return gaps


def _free_before(start_ns: Int64s, end_ns: Int64s, calls: LaunchCalls) -> Int64s:
    """From the launches before to each launch: how long no thread was in a call."""
    before = np.maximum.accumulate(end_ns)
    begin = np.minimum(np.concatenate((start_ns[:1], before[:-1])), start_ns)
    inside = union(calls.calls.start_ns, calls.calls.end_ns)
    return np.asarray(start_ns - begin - covered_length(start_ns, inside) + covered_length(begin, inside))
