"""Why a device was idle (docs/measures.md#idle): each gap between its work, split by what the host was doing.

Guarantees: pure; integer nanoseconds; the causes of every gap add up to it, and those of a device to its `idle`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report import IdleCauses, StreamIdle

from fleetprof_analyzer.intervals import covered
from fleetprof_analyzer.measures.devices import DeviceWork
from fleetprof_analyzer.measures.host_activity import HostRows, Level, Levels, group_threads, stack_levels, unite_levels
from fleetprof_analyzer.measures.launch_calls import LaunchCalls
from fleetprof_analyzer.trace import Bools, Int64s, Rows, Trace

_SHORTEST_DELAY_NS: Final = 5_000
_LONGEST_DELAY_NS: Final = 20_000
_STREAM_WAIT_NS: Final = 30_000  # HTA's consecutive_kernel_delay
_NEVER: Final = np.iinfo(np.int64).max


class Part(IntEnum):
    """What a gap is made of: the causes of the report, the compound ones by their parts."""

    DATA_LOADING = 0
    BLOCKED = 1  # synchronization: in the call
    RESTART = 2  # synchronization: the host begins anew
    LAUNCHING = 3
    OPTIMIZER = 4
    OPERATORS = 5  # of the host, like the next three
    RUNTIME = 6
    ALLOCATION = 7
    PYTHON = 8
    WAITING_SHORT = 9
    WAITING_LONG = 10
    UNKNOWN = 11


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle gaps [begin, end) of a device and the call [call_start, call_end) on `thread` that launched what ends each.

    Columns of equal length; thread is -1 where the trace has no launch for it.
    """

    begin_ns: Int64s
    end_ns: Int64s
    call_start_ns: Int64s
    call_end_ns: Int64s
    thread: Int64s

    def select(self, mask: Bools) -> "Gaps":
        """The gaps where `mask` is true."""
        return Gaps(*(getattr(self, name)[mask] for name in self.__slots__))


def find_gaps(work: DeviceWork, calls: LaunchCalls) -> Gaps:
    """The gaps that end where work begins, from the first start on."""
    starts, ends = work.busy()
    # Rows of no length are no work, but the first of them begins the span.
    begin = np.concatenate(([work.rows.start_ns.min()], ends))[: len(starts)]
    begin, end = begin[begin < starts], starts[begin < starts]
    rows = work.rows.select(work.rows.duration_ns > 0)
    call = calls.of(rows)
    launched = call >= 0
    call_start = np.full(len(rows), _NEVER)
    call_start[launched] = calls.calls.start_ns[call[launched]]
    # Of several rows that end a gap together, the one that was launched first.
    order = np.lexsort((rows.correlation, call_start, rows.start_ns))
    first = order[np.searchsorted(rows.start_ns[order], end)]
    call, launched = call[first], launched[first]
    if not launched.any():
        nothing = np.zeros(len(end), np.int64)
        return Gaps(begin, end, nothing, nothing, np.full(len(end), -1, np.int64))
    return Gaps(
        begin_ns=begin,
        end_ns=end,
        call_start_ns=calls.calls.start_ns[call],
        call_end_ns=calls.calls.end_ns[call],
        thread=np.where(launched, calls.calls.place[call], -1).astype(np.int64),
    )


def measure_idle(trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows) -> IdleCauses:
    """The causes of one device's idle time."""
    causes = explain_gaps(trace, work, calls, host)[1]
    # What follows the last work of some length (nothing, as a rule) has nothing that ends it.
    _, ends = work.busy()
    last = int(ends[-1]) if len(ends) else int(work.rows.start_ns.min())
    return _to_report(causes.sum(axis=0), after_ns=int(work.rows.end_ns.max()) - last)


def explain_gaps(trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows) -> tuple[Gaps, Int64s]:
    """The n gaps of one device and what each is made of, ns, shape (n, len(Part))."""
    gaps = find_gaps(work, calls)
    parts = np.zeros((len(gaps.thread), len(Part)), np.int64)
    known = np.flatnonzero(gaps.thread >= 0)
    parts[:, Part.UNKNOWN] = np.where(gaps.thread >= 0, 0, gaps.end_ns - gaps.begin_ns)
    if len(known):
        parts[known] = _explain(trace, work, calls, host, gaps.select(gaps.thread >= 0))
    return gaps, parts


def _explain(trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows, gaps: Gaps) -> Int64s:
    """The parts of gaps whose launch is known."""
    parts = np.zeros((len(gaps.thread), len(Part)), np.int64)
    begin, end, call_start, call_end = gaps.begin_ns, gaps.end_ns, gaps.call_start_ns, gaps.call_end_ns
    late_end = np.minimum(np.maximum(call_start, begin), end)
    call_from = np.maximum(begin, call_start)
    in_call = np.maximum(np.minimum(end, call_end) - call_from, 0)
    waited = np.maximum(end - np.maximum(begin, call_end), 0)
    fresh = call_start >= begin
    limit = delay_limit(np.maximum(end - call_end, 0)[fresh])
    delay = np.where(fresh, np.minimum(waited, limit), 0)
    short = ~fresh & (end - begin <= limit)
    parts[:, Part.LAUNCHING] = in_call + delay
    parts[:, Part.WAITING_SHORT] = np.where(short, waited, 0)
    parts[:, Part.WAITING_LONG] = waited - delay - parts[:, Part.WAITING_SHORT]
    launching = unite_levels(host, _launching_threads(work.rows, calls))
    for own in group_threads(gaps.thread):
        mine = np.isin(gaps.thread, own)
        levels = stack_levels(unite_levels(host, own), launching)
        silent = Part.PYTHON if any(trace.places[thread][0] in host.recorded for thread in own) else Part.UNKNOWN
        parts[mine] += _explain_late(begin[mine], late_end[mine], levels, silent)
    return parts


def delay_limit(delays_ns: Int64s) -> int:
    """What still counts as the delay of a launch: the 90th percentile (nearest rank), from 5 to 20 µs."""
    if len(delays_ns) == 0:
        return _SHORTEST_DELAY_NS
    ordered = np.sort(delays_ns)
    return int(np.clip(ordered[-(-len(ordered) * 9 // 10) - 1], _SHORTEST_DELAY_NS, _LONGEST_DELAY_NS))


def measure_stream_idle(rows: Rows, calls: LaunchCalls) -> StreamIdle:
    """HTA's three categories of one device: per stream, the gap before each row that follows another."""
    rows = rows.take(np.lexsort((rows.start_ns, rows.place)))
    if len(rows) < 2:
        return StreamIdle()
    new = np.concatenate(([True], rows.place[1:] != rows.place[:-1]))
    # Rows of one stream may overlap: a gap begins where everything before has ended.
    reached = _running_end(rows.end_ns, new)
    before = np.concatenate(([0], reached[:-1]))
    gap = np.where(new, 0, np.maximum(rows.start_ns - before, 0))
    call = calls.of(rows)
    late = (call >= 0) & (calls.calls.start_ns[call] > before) if len(calls.calls) else np.zeros(len(rows), np.bool_)
    host, rest = int(gap[late].sum()), gap[~late]
    kernel = int(rest[rest < _STREAM_WAIT_NS].sum())
    return StreamIdle(host_wait=host, kernel_wait=kernel, other=int(rest.sum()) - kernel)


def _to_report(ns: Int64s, *, after_ns: int) -> IdleCauses:
    """The report's causes from sums of the parts, shape (len(Part),); `after_ns` more are unknown."""
    part = dict(zip(Part, ns.tolist(), strict=True))
    return IdleCauses(
        data_loading=part[Part.DATA_LOADING],
        synchronization=part[Part.BLOCKED] + part[Part.RESTART],
        launching=part[Part.LAUNCHING],
        host=part[Part.OPERATORS] + part[Part.RUNTIME] + part[Part.ALLOCATION] + part[Part.PYTHON],
        optimizer=part[Part.OPTIMIZER],
        waiting=part[Part.WAITING_SHORT] + part[Part.WAITING_LONG],
        unknown=part[Part.UNKNOWN] + after_ns,
        synchronization_blocked=part[Part.BLOCKED],
        host_operators=part[Part.OPERATORS],
        host_runtime=part[Part.RUNTIME],
        host_allocation=part[Part.ALLOCATION],
        host_python=part[Part.PYTHON],
        waiting_short=part[Part.WAITING_SHORT],
    )


def _explain_late(begin_ns: Int64s, end_ns: Int64s, levels: Levels, silent: Part) -> Int64s:
    """What the host did from the begin of each gap to the launch that ends it, shape (n, len(Part))."""
    parts = np.zeros((len(begin_ns), len(Part)), np.int64)
    pieces = levels.split(begin_ns, end_ns)
    drained = covered(begin_ns, levels.blocking) | covered(begin_ns - 1, levels.blocking)
    data, blocked = pieces[:, Level.DATA], pieces[:, Level.BLOCKING]
    parts[:, Part.DATA_LOADING], parts[:, Part.BLOCKED] = data, blocked
    parts[:, Part.RESTART] = np.where(drained, end_ns - begin_ns - data - blocked, 0)
    rest = np.where(drained[:, None], 0, pieces)
    for part, level in (
        (Part.ALLOCATION, Level.ALLOCATION),
        (Part.OPTIMIZER, Level.OPTIMIZER),
        (Part.RUNTIME, Level.RUNTIME),
        (Part.OPERATORS, Level.OPERATOR),
    ):
        parts[:, part] = rest[:, level]
    parts[:, silent] = rest[:, len(Level)]
    return parts


def _launching_threads(rows: Rows, calls: LaunchCalls) -> list[int]:
    call = calls.of(rows)
    threads: list[int] = np.unique(calls.calls.place[call[call >= 0]]).tolist()
    return threads


def _running_end(end_ns: Int64s, new: npt.NDArray[np.bool_]) -> Int64s:
    """The latest end up to each row within its run; `new` marks where a run begins."""
    run = np.cumsum(new)
    base = int(end_ns.min())
    extent = int(end_ns.max()) - base + 1
    if extent >= _NEVER // (int(run[-1]) + 1):
        # Too wide for the shift below: run by run.
        reached = end_ns.copy()
        for piece in np.split(np.arange(len(end_ns)), np.flatnonzero(new)[1:]):
            reached[piece] = np.maximum.accumulate(end_ns[piece])
        return reached
    return np.asarray(np.maximum.accumulate(end_ns - base + run * extent) - run * extent + base)
