"""Work of a device that the host launched, and that is not in the trace: replayed graphs, lost buffers of the recorder.

Guarantees: pure; a launch explains time up to what shows that its work was over: work that was launched later, or the
end of a wait of the host for its device.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_api.report.report import Iteration

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.rank.window.unrecorded import Lost
from fleetprof_analyzer.trace.intervals import Union, covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_LAUNCH: Final = re.compile(r"Launch")
_GRAPH: Final = re.compile(r"GraphLaunch")
_WAIT: Final = re.compile(r"(?:Device|Stream|Ctx)Synchronize")
_CAPTURE_BEGINS: Final = re.compile(r"StreamBeginCapture")
_CAPTURE_ENDS: Final = re.compile(r"StreamEndCapture")
_LEAST_PERMILLE: Final = 20  # of the launches
_ALIKE: Final = 0.5  # operators of an iteration, to those of the iterations with work


def find_launches_without_work(trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls) -> tuple[Bools, int]:
    """A mask of calls whose work is not in the trace, and the number of calls that launch at all.

    What is launched while a stream is captured does not run: it becomes a graph. A row may be lost now and then, but
    not all of a graph.
    """
    launches = where_name(calls.calls, trace.names, matcher(_LAUNCH))
    used, unjoined = np.zeros(len(calls.calls), np.bool_), 0
    for work in works:
        position = calls.of(work.rows)
        used[position[position >= 0]] = True
        unjoined += int((position < 0).sum())
    begins = _times_of(trace, _CAPTURE_BEGINS).start_ns
    ends = _times_of(trace, _CAPTURE_ENDS).end_ns
    captured = covered(calls.calls.start_ns, _pair(begins, ends))
    launches &= ~captured
    count, missing = int(launches.sum()), launches & ~used
    if unjoined >= int(missing.sum()):  # their work may be there, and not say who launched it
        missing[:] = False
    elif 1000 * int(missing.sum()) < _LEAST_PERMILLE * count:
        missing &= where_name(calls.calls, trace.names, matcher(_GRAPH))
    return missing, count


def add_missing_work(trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls, missing: Bools) -> list[DeviceWork]:
    """The devices with the time that the work of these calls may have taken."""
    if not missing.any():
        return list(works)
    waits = _times_of(trace, _WAIT)
    over = int(trace.rows.end_ns.max())
    found = []
    for work in works:
        mine = np.flatnonzero(missing & _launch_here(work, works, calls))
        at = calls.calls.start_ns[mine]
        position = calls.of(work.rows)
        known = position >= 0
        by_work = _first_after(at, calls.calls.start_ns[position[known]], work.rows.start_ns[known], over)
        until = np.minimum(by_work, _first_after(at, waits.start_ns, waits.end_ns, over))
        unrecorded = work.unrecorded.add(at, until, Lost.WORK_MISSING, work.busy(), mine.astype(np.int64))
        found.append(replace(work, unrecorded=unrecorded))
    return found


def add_iterations_without_work(
    trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls, iterations: Sequence[Iteration]
) -> list[DeviceWork]:
    """The devices with the iterations of which no work and no call of the host's runtime was recorded.

    The host ran about as many operators in them as in those with work. Work of an iteration before may still run.
    """
    if len(iterations) < 2:
        return list(works)
    bounds = np.array([(one.start_ns, one.start_ns + one.duration_ns) for one in iterations], np.int64).T
    rows = trace.rows
    launching, operators = (
        _count(rows.start_ns[rows.category == category], bounds) for category in (Category.RUNTIME, Category.OPERATOR)
    )
    begun, unjoined = np.zeros(len(iterations), np.int64), np.zeros(len(iterations), np.int64)
    for work in works:
        begun += _count(work.rows.start_ns, bounds)
        unjoined += _count(work.rows.start_ns[calls.of(work.rows) < 0], bounds)
    worked = begun > 0
    lost = (launching == 0) & (unjoined == 0)
    if not worked.any() or not lost.any():
        return list(works)
    lost &= operators >= max(1, _ALIKE * float(np.median(operators[worked])))
    starts, ends = bounds[:, lost]
    return [
        replace(work, unrecorded=work.unrecorded.add(starts, ends, Lost.NO_DEVICE_ROWS, work.busy())) for work in works
    ]


def _launch_here(work: DeviceWork, works: Sequence[DeviceWork], calls: LaunchCalls) -> Bools:
    """Calls of threads that launch on this device."""
    if len(works) == 1:
        return np.ones(len(calls.calls), np.bool_)
    position = calls.of(work.rows)
    return np.isin(calls.calls.place, calls.calls.place[position[position >= 0]])


def _first_after(at: Int64s, key_ns: Int64s, time_ns: Int64s, none_ns: int) -> Int64s:
    """For each time the least `time_ns` of those whose key lies behind it; `none_ns` where there is none."""
    order = np.argsort(key_ns, kind="stable")
    least = np.append(np.minimum.accumulate(time_ns[order][::-1])[::-1], none_ns)
    return np.asarray(least[np.searchsorted(key_ns[order], at, side="right")])


def _times_of(trace: Trace, name: re.Pattern[str]) -> Rows:
    rows = trace.rows
    return rows.select((rows.category == Category.RUNTIME) & where_name(rows, trace.names, matcher(name)))


def _pair(begins: Int64s, ends: Int64s) -> Union:
    """From each begin to the next end."""
    begins, ends = np.sort(begins), np.sort(ends)
    at = np.searchsorted(ends, begins)
    begins, at = begins[at < len(ends)], at[at < len(ends)]
    return union(begins, ends[at])


def _count(times_ns: Int64s, bounds: Int64s) -> Int64s:
    times_ns = np.sort(times_ns)
    return np.asarray(np.searchsorted(times_ns, bounds[1]) - np.searchsorted(times_ns, bounds[0]))
