"""Finds where a rank's local work waits for its communication, and how long that work itself took.

A rank's rows stand in launch order. The chain of local work reaches the launch of operation j, and from some later
row on it goes on only after j has ended: j's join. A join is never violated, so in one iteration it is seen as the
first row after which no row begins before j's end. Where the chain stood still until then it is the join itself;
where j had ended early it may be later, so the iterations of one program are taken together. Guarantees: no clock but
the rank's own; own times are never negative.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.chain.host_chain import (
    HostChain,
    HostWaits,
    follow_host,
    kept_waits,
    no_host,
)
from fleetprof_analyzer.trace.intervals import Union, join, union
from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s

_STRIDE: Final = 1 << 32
_KEPT_SHARE: Final = 0.9
_AGREEING_SHARE: Final = 0.5
_LAUNCH, _JOIN, _WAIT, _END, _PART = range(5)


@dataclass(frozen=True, slots=True)
class Host:
    """The launches of a GPU rank's host, its waits, and the operations that it waited for itself."""

    row_launch_ns: Int64s
    launch_ns: Int64s
    waits: HostWaits
    held: Bools


@dataclass(frozen=True, slots=True)
class ChainWork:
    """Local rows in launch order and the operations among them; m rows, n operations.

    `row_end_ns`, shape (m + 1,), is when all work before a row had ended. `launch_row`, shape (n,), counts the rows
    launched before each operation; it is sorted. A row may begin `tolerance_ns` before the end of what it waited for.
    `begin_ns` is when the chain began its first iteration, None where that is not known.
    """

    row_start_ns: Int64s
    row_end_ns: Int64s
    launch_row: Int64s
    start_ns: Int64s
    end_ns: Int64s
    tolerance_ns: int
    host: Host | None = None
    begin_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """Marks in chain order:

    operation launches, joins, and waits of the host for its device (`mark_waits`; on a join: for the operation; where
    `mark_awaits` is above 0 only until the chain has come to the mark so many back, which has -1 itself).
    `reached_ns` is when the chain had come to a launch mark. The host passed [`host_start_ns`, `host_end_ns`) before a
    mark with something else than waiting.
    """

    mark_operation: Int32s
    mark_joins: Bools
    mark_waits: Bools
    mark_awaits: Int32s
    own_ns: Int64s
    own_start_ns: Int64s  # of each mark: where its own time begins; it is one piece, own_ns long
    reached_ns: Int64s  # per operation
    host: HostChain
    host_start_ns: Int64s
    host_end_ns: Int64s

    @property
    def passed(self) -> Bools:
        """The marks that are no launches: they own no segment."""
        return np.asarray(self.mark_joins | self.mark_waits | (self.mark_awaits < 0))


def find_joins(work: ChainWork, position: Int64s) -> Int64s:
    """The row before which the chain waits for each operation, shape (n,); m at the end of the recording, m + 1:
    never.

    `position` numbers operations within their iteration, the same number for the same operation of the program, -1
    where iterations differ.
    """
    rows, count = len(work.row_start_ns), len(work.end_ns)
    earliest_after = np.minimum.accumulate(work.row_start_ns[::-1])[::-1]
    next_row = np.searchsorted(earliest_after, work.end_ns - work.tolerance_ns)
    next_row = np.maximum(next_row, work.launch_row)
    stood = np.maximum(work.end_ns - work.row_end_ns[next_row], 0)
    # In units that iterations share: operations launched since, and rows after the last of them.
    operation = np.arange(count)
    reached = np.maximum(np.searchsorted(work.launch_row, next_row, side="right") - 1, operation)
    offset = (reached - operation) * _STRIDE + (next_row - work.launch_row[reached])
    next_launch = np.append(work.launch_row, rows)
    joins = np.where(next_row < rows, next_row, rows + 1)
    by_position = np.argsort(position, kind="stable")
    cuts = np.flatnonzero(np.diff(position[by_position], prepend=-2))
    for here in np.split(by_position, cuts[1:]):
        known = here[next_row[here] < rows]
        if len(known) == 0 or position[here[0]] < 0:
            continue
        typical, certain = _typical(offset[known], stood[known], work.tolerance_ns)
        target = np.minimum(operation[here] + typical // _STRIDE, count - 1)
        # Rows up to the next launch only, where this iteration has fewer of them.
        pooled = np.minimum(work.launch_row[target] + typical % _STRIDE, next_launch[target + 1])
        joins[here] = pooled if certain else np.maximum(pooled, np.minimum(next_row[here], rows))
    return np.asarray(joins)


def _typical(offset: Int64s, stood_ns: Int64s, tolerance_ns: int) -> tuple[int, bool]:
    """(the join's offset, whether it is certain): where the chain stood still longest, if it stood still at all."""
    values, owner = np.unique(offset, return_inverse=True)
    stood = np.bincount(owner, stood_ns)
    if stood.max() > tolerance_ns and stood.max() >= _AGREEING_SHARE * stood.sum():
        return int(values[stood.argmax()]), True
    ordered = np.sort(offset)
    return int(ordered[int(np.ceil(_KEPT_SHARE * (len(ordered) - 1)))]), False


def build_chain(work: ChainWork, join_row: Int64s) -> Chain:
    """The marks of the operations in chain order."""
    rows, count = len(work.row_start_ns), len(work.end_ns)
    joined = np.flatnonzero(join_row <= rows)
    waits, idle = _waits(work)
    part = np.flatnonzero(waits.awaited >= 0)
    lengths = count, len(joined), len(waits.row), len(part)
    operation = np.concatenate((np.arange(count), joined, np.zeros(len(waits.row) + len(part), np.int64)))
    row = np.concatenate((work.launch_row, join_row[joined], waits.row, waits.awaited[part]))
    kind = np.repeat((_LAUNCH, _JOIN, _WAIT, _END), lengths)
    kind[count + len(joined) + part] = _PART
    place, ended = _places(work, join_row, joined), work.end_ns[joined]
    if work.host is not None:
        before = np.searchsorted(work.host.launch_ns, waits.start_ns)
        at_end = np.searchsorted(work.launch_row, waits.awaited[part])
        operation[count + len(joined) :] = np.maximum(np.concatenate((before, at_end)) - 1, 0)
        place = _behind_waits(place, join_row[joined], ended, waits, 2 * before - 1, work.tolerance_ns)
        places = np.concatenate((2 * np.arange(count), place, 2 * before - 1, 2 * at_end - 1))
    else:
        places = np.concatenate((2 * np.arange(count), place))
    moment = np.concatenate((work.end_ns, ended, waits.end_ns + work.tolerance_ns, np.zeros(len(part), np.int64)))
    first = (kind == _LAUNCH) | (kind == _END)
    order = np.lexsort((operation, np.where(first, 0, moment), places, row))
    time = _times(work, operation[order], row[order], kind[order] == _JOIN)
    # A call that returned before the chain was there waited for less.
    misplaced = (kind[order] == _WAIT) & (time > moment[order])
    if misplaced.any():
        there = order[misplaced] - count - len(joined)
        idle = join(idle, union(*(np.sort(one) for one in (waits.start_ns[there], waits.end_ns[there]))))
        order, time = order[~misplaced], time[~misplaced]
    operation, row, kind, moment = operation[order], row[order], kind[order], moment[order]
    joins, local = kind == _JOIN, work.row_end_ns[row]
    begin = local[:1] if work.begin_ns is None else np.minimum(local[:1], work.begin_ns)
    before_mark = np.concatenate((begin, time[:-1]))
    own = np.maximum(local - before_mark, 0)
    reached = np.zeros(count, np.int64)
    launches = kind == _LAUNCH
    reached[operation[launches]] = time[launches]
    if work.host is None:
        return Chain(
            operation.astype(np.int32), joins, np.zeros(len(row), np.bool_), np.zeros(len(row), np.int32), own,
            before_mark, reached, no_host(own), before_mark, before_mark,
        )  # fmt: skip
    held = joins & work.host.held[operation]
    of_wait = np.clip(order - count - len(joined), 0, max(len(waits.row) - 1, 0))
    start, until = (waits.start_ns[of_wait], _until(work, waits)[of_wait]) if len(waits.row) else (moment, moment)
    is_part = kind == _PART
    waiting = is_part | (kind == _WAIT)
    # Before the first row the host has launched no more than the operation.
    launched = np.where(row > 0, np.append(0, work.host.row_launch_ns)[row], work.host.launch_ns[operation])
    came = np.where(launches | held, work.host.launch_ns[operation], np.where(waiting, start, launched))
    there = np.where(is_part, until, np.minimum(time, moment))
    went = np.where(held, work.end_ns[operation], np.where(waiting, there, came))
    resumed = np.maximum.accumulate(np.maximum(came, went))
    came = np.maximum(came, np.concatenate((came[:1], resumed[:-1])))
    host = follow_host(row, time, own, came, resumed, work.row_start_ns, work.row_end_ns, work.host.row_launch_ns, idle)
    return Chain(
        operation.astype(np.int32), joins, held | waiting, _awaits(order, kind), own, before_mark, reached, host,
        np.concatenate((came[:1], resumed[:-1])), came,
    )  # fmt: skip


def _times(work: ChainWork, operation: Int64s, row: Int64s, joins: Bools) -> Int64s:
    """The time of the chain at each mark."""
    local = work.row_end_ns[row]
    # A thread that woke before the range of what it waited for was closed has gone on at its own start.
    released = np.minimum(work.end_ns[operation], np.append(work.row_start_ns, np.iinfo(np.int64).max)[row])
    return np.asarray(np.maximum.accumulate(np.where(joins, np.maximum(local, released), local)))


def _awaits(order: Int64s, kind: Int64s) -> Int32s:
    """Tells of marks in chain order how far back the end of the rows lies that a call waits for; -1 at such an end."""
    awaits = np.where(kind == _END, -1, 0).astype(np.int32)
    calls, ends = np.flatnonzero(kind == _PART), np.flatnonzero(kind == _END)
    # Ends were made in the order of their calls.
    calls, ends = calls[np.argsort(order[calls])], ends[np.argsort(order[ends])]
    awaits[calls] = calls - ends
    return awaits


def _until(work: ChainWork, waits: HostWaits) -> Int64s:
    """The time at which each call that waits for a part had what it waited for."""
    ended = work.row_end_ns[np.maximum(waits.awaited, 0)]
    return np.clip(ended, waits.start_ns, waits.end_ns)


def _waits(work: ChainWork) -> tuple[HostWaits, Union]:
    """The host's calls that waited for the chain or a known part of it, and when it waited for something else."""
    none = np.zeros(0, np.int64)
    if work.host is None:
        return HostWaits(none, none, none, none), (none, none)
    waits = work.host.waits
    kept = kept_waits(waits, work.row_end_ns, work.tolerance_ns) | (waits.awaited >= 0)
    others = union(waits.start_ns[~kept], waits.end_ns[~kept])
    return HostWaits(waits.start_ns[kept], waits.end_ns[kept], waits.row[kept], waits.awaited[kept]), others


def _behind_waits(
    place: Int64s, row: Int64s, ended_ns: Int64s, waits: HostWaits, wait_place: Int64s, tolerance_ns: int
) -> Int64s:
    """A join whose operation outlasted a wait of the host at its row comes after that: the host did not wait for it."""
    place = place.copy()
    first, stop = np.searchsorted(waits.row, row), np.searchsorted(waits.row, row, side="right")
    for number in np.flatnonzero(stop > first):
        here = slice(int(first[number]), int(stop[number]))
        outlasted = wait_place[here][waits.end_ns[here] + tolerance_ns < ended_ns[number]]
        place[number] = max(place[number], int(outlasted.max(initial=place[number])))
    return place


def _places(work: ChainWork, join_row: Int64s, joined: Int64s) -> Int64s:
    """The place of each join among the launches of its row: before those that begin after its operation's end.

    In half steps: 2 i is operation i itself.
    """
    row, after_ns = join_row[joined], work.end_ns[joined] - work.tolerance_ns
    first = np.maximum(np.searchsorted(work.launch_row, row), joined + 1)
    stop = np.searchsorted(work.launch_row, row, side="right")
    places = 2 * np.maximum(stop, joined + 1) - 1
    for number in np.flatnonzero(stop > first):
        early = work.start_ns[first[number] : stop[number]] < after_ns[number]
        places[number] = 2 * (first[number] + (int(np.flatnonzero(early)[-1]) + 1 if early.any() else 0)) - 1
    return np.asarray(places)


def next_owner(operation: Int32s | Int64s, passed: Bools, count: int) -> Int64s:
    """For each mark the operation whose segment it belongs to: launched at it or next after it; `count`: none.

    Marks that are `passed` own nothing: joins, and operations that do not wait for the chain.
    """
    following = np.where(passed, count, operation.astype(np.int64))
    return np.asarray(np.minimum.accumulate(following[::-1])[::-1])
