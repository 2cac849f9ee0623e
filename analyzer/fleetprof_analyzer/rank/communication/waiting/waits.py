"""Finds the waits of a host for its device by what they do, whatever the recorder calls them, or if they are in no row.

A wait ends when the work ends on which it can depend, again and again. What a thread does between is its own. So a
stretch in which the launching threads do nothing new counts as a wait where, at the same place of the program, such
stretches end right behind the end of all that was launched before them. Guarantees: pure; the rank's clock alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.launches import LaunchTimes
from fleetprof_analyzer.trace.classes import is_collection, is_data_loading
from fleetprof_analyzer.trace.intervals import Union, covered_length, join, union, without
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows

_NAMED: Final = re.compile(r"Synchronize|^(?:cuda|hip)Memcpy$|^cuMemcpy(?:DtoH|HtoD)(?:_v2)?$")
_LONG_NS: Final = 40_000  # shorter stretches are the host's steps
_WAKE_NS: Final = 15_000  # from the end of the work until the thread goes on
_STEPS_SHARE: Final = 0.02  # of a stretch: what the thread does before its next row
_EARLY_NS: Final = 2_000  # rounded times
_AGREEING_SHARE: Final = 0.9
_FEWEST: Final = 3
# A stretch that lasts longer when the work does, and not otherwise, waits for it, however much the thread does besides.
_MOST_STEPS_SHARE: Final = 0.25
_FEWEST_TO_COMPARE: Final = 5
_MOST_LEFT: Final = 0.2  # of the deviation of the stretches' lengths, once the work has ended
_MOST_STREAMS: Final = 12
_STRIDE: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of the host for its device, and those that it may have made, which nothing tells from its own time."""

    known: Union
    possible: Union


def find_waits(host: Rows, names: list[str], work: Rows, launch: LaunchTimes) -> Waits | None:
    """The host's waits; None where no call was recorded. `launch` has when `work` was launched."""
    calls = host.category == Category.RUNTIME
    if not calls.any():
        return None
    named = calls & where_name(host, names, lambda name: _NAMED.search(name) is not None)
    launches = calls & np.isin(host.correlation, work.correlation)
    threads = np.isin(host.place, np.unique(host.place[launches]))
    marked = where_name(host, names, lambda name: is_data_loading(name) or is_collection(name))
    steps = host.select(threads & ~named)
    steps = steps.select(~_asks_again(steps, launches[threads & ~named]))
    by_name = union(host.start_ns[named], host.end_ns[named])
    by_deed = _waits_by_deed(steps, union(host.start_ns[marked], host.end_ns[marked]), work, launch)
    known = join(by_name, by_deed.known)
    return Waits(known, without(by_deed.possible, known))


def _asks_again(rows: Rows, launches: Bools) -> Bools:
    """Calls that the same call follows, and that launch nothing: a thread that asks until its work is done."""
    order = np.lexsort((rows.start_ns, rows.place))
    name, place = np.where(launches | (rows.category != Category.RUNTIME), -1, rows.name)[order], rows.place[order]
    again = np.zeros(len(rows), np.bool_)
    again[order[:-1]] = (name[1:] == name[:-1]) & (place[1:] == place[:-1]) & (name[1:] >= 0)
    return again


def _waits_by_deed(steps: Rows, marked: Union, work: Rows, launch: LaunchTimes) -> Waits:
    """Stretches without a step of the launching threads, and not `marked`, that end behind the end of their work."""
    # Work that begins as soon as it may shows when a call was made whose row is lost.
    lost = work.select(~launch.known & (launch.called == work.start_ns) & launch.known.any())
    moments = np.concatenate((steps.start_ns, steps.end_ns, lost.start_ns))
    goes_on = np.concatenate((2 * steps.name, 2 * steps.name + 1, np.full(len(lost), -1)))
    by_time = np.argsort(moments, kind="stable")
    moments, goes_on = moments[by_time], goes_on[by_time]
    long = np.flatnonzero(np.diff(moments) > _LONG_NS)
    long = long[covered_length(moments[long + 1], marked) == covered_length(moments[long], marked)]
    begin, end = moments[long], moments[long + 1]
    order = np.argsort(launch.called, kind="stable")
    last = np.searchsorted(launch.called[order], begin, side="right") - 1
    # The same place of the program: the work launched last, and the row that begins or ends when the thread goes on.
    launched = np.where(last >= 0, work.name[order][last], -1)
    place = (launched.astype(np.int64) + 1) * _STRIDE + goes_on[long + 1]
    groups = [np.unique(one, return_inverse=True)[1] for one in (launched, place)]
    until, possible = begin.copy(), np.zeros(len(begin), np.bool_)
    for chosen in _waited_for(work):
        called, ended = launch.called[order][chosen[order]], np.maximum.accumulate(work.end_ns[order][chosen[order]])
        before = np.searchsorted(called, begin, side="right") - 1
        drained = np.where(before >= 0, ended[np.maximum(before, 0)], begin)
        for group in groups:
            until = np.maximum(until, _end_behind(begin, end, drained, group))
            until = np.maximum(until, _end_behind_part(begin, end, before + 1, ended, group))
        possible |= _may_wait(begin, end, drained)
    waits = until > begin
    return Waits(union(begin[waits], until[waits]), union(begin[possible], end[possible]))


def _may_wait(begin_ns: Int64s, end_ns: Int64s, drained_ns: Int64s) -> Bools:
    """Tells whether the work before it ended within a stretch, and not long before the stretch did."""
    after = end_ns - drained_ns
    return (drained_ns > begin_ns) & (after >= -_EARLY_NS) & (after <= _MOST_STEPS_SHARE * (end_ns - begin_ns))


def _waited_for(work: Rows) -> Iterator[Bools]:
    """The work that a host may wait for, as rows of `work`: all of it, or one stream."""
    yield np.ones(len(work), np.bool_)
    rows = np.bincount(work.place)
    for place in np.argsort(-rows)[: min(_MOST_STREAMS, int((rows > 0).sum()))].tolist():
        yield work.place == place


def _end_behind(begin_ns: Int64s, end_ns: Int64s, drained_ns: Int64s, group: Int64s) -> Int64s:
    """Until when each stretch waits, shape (n,): its begin where it does not.

    One that waits ends right behind `drained_ns`, when the work launched before it had ended, as nearly all of its
    group do. Where the work had ended before, nothing is told.
    """
    busy, length, after = drained_ns > begin_ns, end_ns - begin_ns, end_ns - drained_ns
    near = busy & (after >= -_EARLY_NS) & (after <= np.maximum(_WAKE_NS, _STEPS_SHARE * length))
    found = near & _are_most(near, busy, group)
    later = _may_wait(begin_ns, end_ns, drained_ns)
    for one in np.flatnonzero(np.bincount(group, later) >= _FEWEST_TO_COMPARE).tolist():
        here = later & (group == one)
        if here.sum() >= _AGREEING_SHARE * (busy & (group == one)).sum():
            found |= here & (after[here].std() <= _MOST_LEFT * length[here].std())
    return np.where(found, np.minimum(end_ns, drained_ns + _WAKE_NS), begin_ns)


def _end_behind_part(begin_ns: Int64s, end_ns: Int64s, launched: Int64s, ended_ns: Int64s, group: Int64s) -> Int64s:
    """The same of stretches that end behind one row, so many rows before the last of the `launched` ones.

    As where a host waits until an earlier layer is through. Rows end all the time, so a stretch must last as they do.
    """
    ended = np.minimum(np.searchsorted(ended_ns, end_ns + _EARLY_NS, side="right"), launched)
    row_end_ns = np.append(ended_ns, 0)[ended - 1]
    left = launched - ended
    part = np.unique(group.astype(np.int64) * (int(left.max(initial=0)) + 1) + left, return_inverse=True)[1]
    after, length = end_ns - row_end_ns, end_ns - begin_ns
    near = (ended > 0) & (left > 0) & (row_end_ns > begin_ns) & (after <= _WAKE_NS)
    found = np.zeros(len(begin_ns), np.bool_)
    for one in np.flatnonzero(np.bincount(part, near) >= _FEWEST_TO_COMPARE).tolist():
        here = part == one
        if near[here].mean() >= _AGREEING_SHARE and after[here].std() <= _MOST_LEFT * length[here].std():
            found |= here & near
    return np.where(found, end_ns, begin_ns)


def _are_most(chosen: Bools, of: Bools, group: Int64s) -> Bools:
    """Tells whether the chosen ones are enough, and nearly all of their group, shape (n,)."""
    count, here = np.bincount(group, of), np.bincount(group, chosen)
    return ((here >= _FEWEST) & (here >= _AGREEING_SHARE * count))[group]
