"""The causes of a device's idle time (docs/measures.md#idle): each gap of its work, split by what the host was doing.

Guarantees: pure; integer nanoseconds; the causes of every gap add up to it, and those of a device to its `idle`.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import StreamIdle

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.host_activity import HostActivity, HostRows, Levels, group_threads, unite_levels
from fleetprof_analyzer.rank.measures.idle.gaps import (
    NEVER,
    Gaps,
    Launched,
    are_fresh,
    delay_limit,
    find_edges,
    find_gaps,
    join_gaps,
)
from fleetprof_analyzer.rank.measures.idle.places import LongGaps, choose_longest
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.intervals import Union, covered, covered_length
from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.trace import Int64s, Trace

_STREAM_WAIT_NS: Final = 30_000  # HTA's consecutive_kernel_delay


class GapPart(IntEnum):
    """A part of a gap: the causes of the report, the compound ones by their parts."""

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


FIELDS: Final[Mapping[GapPart, tuple[str, ...]]] = {
    GapPart.DATA_LOADING: ("data_loading",),
    GapPart.BLOCKED: ("synchronization", "synchronization_blocked"),
    GapPart.RESTART: ("synchronization",),
    GapPart.LAUNCHING: ("launching",),
    GapPart.OPTIMIZER: ("optimizer",),
    GapPart.OPERATORS: ("host", "host_operators"),
    GapPart.RUNTIME: ("host", "host_runtime"),
    GapPart.ALLOCATION: ("host", "host_allocation"),
    GapPart.PYTHON: ("host", "host_python"),
    GapPart.WAITING_SHORT: ("waiting", "waiting_short"),
    GapPart.WAITING_LONG: ("waiting",),
    GapPart.UNKNOWN: ("unknown",),
}
"""The fields of IdleCauses that a part adds to: its cause, then the part of the cause that it is."""
_KINDS: Final[dict[str, tuple[GapPart, ...]]] = {
    "data_loading": (GapPart.DATA_LOADING,),
    "synchronization": (GapPart.BLOCKED, GapPart.RESTART),
    "launch_bound": (GapPart.LAUNCHING, GapPart.OPERATORS, GapPart.RUNTIME),
    "python": (GapPart.PYTHON,),
    "allocation": (GapPart.ALLOCATION,),
    "optimizer": (GapPart.OPTIMIZER,),
    "waiting": (GapPart.WAITING_LONG,),
}
"""What the findings of idle time are made of."""


def measure_idle(
    trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows, start_ns: Int64s, end_ns: Int64s
) -> tuple[IdleCauses, list[IdleCauses], list[LongGaps]]:
    """The causes of one device's idle time, and of that within each window [start, end), shapes (k,); the longest gaps.

    A window reaches beyond the device's first start and last end.
    """
    launched = Launched.of(work, calls)
    gaps = find_gaps(launched)
    limit = delay_limit(np.maximum(gaps.end_ns - gaps.call_end_ns, 0)[are_fresh(gaps)])
    borders = np.concatenate((start_ns, end_ns))
    before, after = find_edges(launched, borders)
    every = join_gaps((before, gaps, after))
    # Of a gap that a border cuts, also the part before the border.
    at = np.searchsorted(every.begin_ns, borders, side="right") - 1
    cuts = np.flatnonzero((at >= 0) & (borders < every.end_ns[at])) if len(every.thread) else borders[:0]
    count, first, last = len(every.thread), len(before.thread), len(before.thread) + len(gaps.thread)
    ended = np.searchsorted(every.end_ns, borders, side="right")
    until = np.concatenate((every.end_ns, borders[cuts]))
    every = join_gaps((every, every.select(at[cuts])))
    # Gaps are many: no second copy of them is kept while they are explained.
    del gaps
    parts = _explain(trace, launched, host, every, until, limit)
    # What lies before each border: whole gaps, and the part of one.
    upto = np.zeros((len(borders), len(GapPart)), np.int64)
    total, reached = np.zeros(len(GapPart), np.int64), 0
    for border in np.argsort(ended).tolist():
        total = total + parts[reached : ended[border]].sum(axis=0)
        upto[border], reached = total, int(ended[border])
    upto[cuts] += parts[count:]
    within = upto[len(start_ns) :] - upto[: len(start_ns)]
    own = parts[first:last].sum(axis=0)
    longest = choose_longest(
        {kind: parts[first:last, list(made_of)].sum(axis=1) for kind, made_of in _KINDS.items()},
        every.select(np.arange(first, last)),
        int(work.rows.end_ns.max() - work.rows.start_ns.min()),
    )
    # What follows the last work of some length (nothing, as a rule) has nothing that ends it.
    after_ns = int(work.rows.end_ns.max()) - launched.last_end_ns
    return _to_report(own, after_ns=after_ns), [_to_report(one) for one in within], longest


def explain_gaps(trace: Trace, work: DeviceWork, calls: LaunchCalls, host: HostRows) -> tuple[Gaps, Int64s]:
    """The n gaps of one device and what each is made of, ns, shape (n, len(GapPart))."""
    launched = Launched.of(work, calls)
    gaps = find_gaps(launched)
    limit = delay_limit(np.maximum(gaps.end_ns - gaps.call_end_ns, 0)[are_fresh(gaps)])
    return gaps, _explain(trace, launched, host, gaps, gaps.end_ns, limit)


def _explain(trace: Trace, launched: Launched, host: HostRows, gaps: Gaps, until_ns: Int64s, limit: int) -> Int64s:
    """The parts of gaps up to `until_ns`, shape (n, len(GapPart)); `limit` is the device's delay of a launch."""
    known = np.flatnonzero(gaps.thread >= 0)
    if len(known) == len(gaps.thread) > 0:
        return _explain_known(trace, launched, host, gaps, until_ns, limit)
    parts = np.zeros((len(gaps.thread), len(GapPart)), np.int64)
    parts[:, GapPart.UNKNOWN] = np.where(gaps.thread >= 0, 0, until_ns - gaps.begin_ns)
    if len(known):
        parts[known] = _explain_known(trace, launched, host, gaps.select(known), until_ns[known], limit)
    return parts


def _explain_known(
    trace: Trace, launched: Launched, host: HostRows, gaps: Gaps, until_ns: Int64s, limit: int
) -> Int64s:
    """The parts of gaps whose launch is known."""
    parts = np.zeros((len(gaps.thread), len(GapPart)), np.int64)
    _explain_launched(parts, gaps, until_ns, limit)
    begin = gaps.begin_ns
    late_end = np.minimum(np.maximum(gaps.call_start_ns, begin), until_ns)
    launching = _launching_threads(launched)
    late = np.flatnonzero(late_end > begin)

    @cache
    def unite(*threads: int) -> list[Union]:
        return unite_levels(host, threads)

    for own in group_threads(gaps.thread[late]):
        mine = late[np.isin(gaps.thread[late], own)]
        group = set(own)
        others = [thread for thread in launching if thread not in group]
        levels = Levels(unite(*own), unite(*others))
        silent = GapPart.PYTHON if any(trace.places[thread][0] in host.recorded for thread in own) else GapPart.UNKNOWN
        for part, lengths in _explain_late(begin[mine], late_end[mine], levels, silent):
            parts[mine, part] += lengths
    return parts


def _explain_launched(parts: Int64s, gaps: Gaps, until_ns: Int64s, limit: int) -> None:
    """Fills in what lies in the launching call of each gap and behind it."""
    begin, call_end = gaps.begin_ns, gaps.call_end_ns
    in_call = np.maximum(np.minimum(until_ns, call_end) - np.maximum(begin, gaps.call_start_ns), 0)
    waited = np.maximum(until_ns - np.maximum(begin, call_end), 0)
    fresh = are_fresh(gaps)
    delay = np.where(fresh, np.minimum(waited, limit), 0)
    short = ~fresh & (gaps.end_ns - begin <= limit)
    parts[:, GapPart.LAUNCHING] = in_call + delay
    parts[:, GapPart.WAITING_SHORT] = np.where(short, waited, 0)
    parts[:, GapPart.WAITING_LONG] = waited - delay - parts[:, GapPart.WAITING_SHORT]


def measure_stream_idle(work: DeviceWork, calls: LaunchCalls) -> StreamIdle:
    """HTA's three categories of one device: per stream, the gap before each row that follows another.

    What was not recorded of the device is no part of a gap.
    """
    rows = work.rows
    rows = rows.take(np.lexsort((rows.start_ns, rows.place)))
    if len(rows) < 2:
        return StreamIdle()
    new = np.concatenate(([True], rows.place[1:] != rows.place[:-1]))
    # Rows of one stream may overlap: a gap begins where everything before has ended.
    reached = _running_end(rows.end_ns, new)
    before = np.concatenate(([0], reached[:-1]))
    gap = np.where(new, 0, np.maximum(rows.start_ns - before, 0))
    if len(work.unrecorded):
        begin, lost = rows.start_ns - gap, work.unrecorded.times
        gap -= covered_length(rows.start_ns, lost) - covered_length(begin, lost)
    call = calls.of(rows)
    late = (call >= 0) & (calls.calls.start_ns[call] > before) if len(calls.calls) else np.zeros(len(rows), np.bool_)
    host, rest = int(gap[late].sum()), gap[~late]
    kernel = int(rest[rest < _STREAM_WAIT_NS].sum())
    return StreamIdle(host_wait=host, kernel_wait=kernel, other=int(rest.sum()) - kernel)


def _to_report(ns: Int64s, *, after_ns: int = 0) -> IdleCauses:
    """The report's causes from sums of the parts, shape (len(GapPart),); `after_ns` more are unknown."""
    fields = {"unknown": after_ns}
    for part, time_ns in zip(GapPart, ns.tolist(), strict=True):
        for field in FIELDS[part]:
            fields[field] = fields.get(field, 0) + time_ns
    return IdleCauses(**fields)


def _explain_late(
    begin_ns: Int64s, end_ns: Int64s, levels: Levels, silent: GapPart
) -> Iterator[tuple[GapPart, Int64s]]:
    """The work of the host from the begin of each gap to the launch that ends it, ns, shape (n,), part by part."""
    pieces = levels.split(begin_ns, end_ns)
    drained = covered(begin_ns, levels.blocking) | covered(begin_ns - 1, levels.blocking)
    data, blocked = pieces[:, HostActivity.DATA], pieces[:, HostActivity.BLOCKING]
    yield GapPart.DATA_LOADING, data
    yield GapPart.BLOCKED, blocked
    yield GapPart.RESTART, np.where(drained, end_ns - begin_ns - data - blocked, 0)
    for part, column in (
        (GapPart.ALLOCATION, HostActivity.ALLOCATION),
        (GapPart.OPTIMIZER, HostActivity.OPTIMIZER),
        (GapPart.RUNTIME, HostActivity.RUNTIME),
        (GapPart.OPERATORS, HostActivity.OPERATOR),
        (silent, len(HostActivity)),
    ):
        yield part, np.where(drained, 0, pieces[:, column])


def _launching_threads(launched: Launched) -> list[int]:
    places = launched.calls.calls.place[launched.call[launched.call >= 0]]
    threads: list[int] = distinct(places.astype(np.int64)).tolist()
    return threads


def _running_end(end_ns: Int64s, new: npt.NDArray[np.bool_]) -> Int64s:
    """The latest end up to each row within its run; `new` marks where a run begins."""
    run = np.cumsum(new)
    base = int(end_ns.min())
    extent = int(end_ns.max()) - base + 1
    if extent >= NEVER // (int(run[-1]) + 1):
        # Too wide for the shift below: run by run.
        reached = end_ns.copy()
        for piece in np.split(np.arange(len(end_ns)), np.flatnonzero(new)[1:]):
            reached[piece] = np.maximum.accumulate(end_ns[piece])
        return reached
    return np.asarray(np.maximum.accumulate(end_ns - base + run * extent) - run * extent + base)
