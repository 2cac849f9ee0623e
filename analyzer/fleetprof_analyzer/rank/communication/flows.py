"""Finds the calls of device work whose correlation a recorder has lost, as where its buffers were full.

A stream runs in the order of launches, so the call of a row lies between those of the rows before and behind it, and
where its number is known also between those of the numbers before and behind.
Guarantees: pure; two numbers that differ are never joined; a row without a call in between stays without one.
"""

from collections import defaultdict
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from fleetprof_analyzer.rank.communication.numbers import calls_around
from fleetprof_analyzer.trace.trace import COLUMNS, Bools, Category, Int32s, Int64s, Rows, Trace


def restore_flows(trace: Trace) -> Trace:
    """The trace with one number for a call and its work where a recorder lost it; itself where nothing was lost."""
    rows, number = trace.rows, trace.rows.correlation
    work, calls = np.flatnonzero(rows.on_device), np.flatnonzero(rows.category == Category.RUNTIME)
    if not len(work) or not len(calls) or min(number[work].min(), number[calls].min()) >= 0:
        return trace
    launched_by = _call_of_each(number[work], calls, number[calls], rows.start_ns[calls])
    known = launched_by >= 0
    free = calls[(number[calls] < 0) | ~np.isin(number[calls], number[work])]
    if known.all() or not known.any() or not len(free):
        return trace
    after_ns, until_ns = _bounds(rows.place[work], rows.start_ns[work], rows.start_ns[launched_by], known)
    around = calls_around(rows, number[work])
    if around is not None:
        after_ns, until_ns = np.maximum(after_ns, around.before_ns), np.minimum(until_ns, around.behind_ns)
    usual = _usual_calls(rows.name[work][known], rows.name[launched_by[known]], len(trace.names))
    is_open = np.flatnonzero(~known & _is_first(number[work], rows.start_ns[work]))
    name = usual[rows.name[work[is_open]]]
    launched, call = _pair_up(rows, work[is_open], (name, after_ns[is_open], until_ns[is_open]), free)
    restored, shared = number.copy(), np.maximum(number[launched], number[call])
    restored[launched] = restored[call] = np.where(shared >= 0, shared, int(number.max()) + 1 + np.arange(len(shared)))
    return replace(trace, rows=Rows(**{one: getattr(rows, one) for one in COLUMNS} | {"correlation": restored}))


def _call_of_each(number: Int64s, calls: Int64s, of_calls: Int64s, start_ns: Int64s) -> Int64s:
    """The first call with each number, a position in the trace's rows; -1 where there is none, or no number."""
    order = np.lexsort((start_ns, of_calls))
    at = np.minimum(np.searchsorted(of_calls[order], number), len(order) - 1)
    return np.where((of_calls[order][at] == number) & (number >= 0), calls[order][at], -1)


def _is_first(number: Int64s, start_ns: Int64s) -> Bools:
    """Tells whether a row of work is the first of its number, as of a graph's, or has none."""
    order = np.lexsort((start_ns, number))
    first = np.ones(len(order), np.bool_)
    first[order[1:]] = np.diff(number[order]) != 0
    return first | (number < 0)


def _bounds(place: Int32s, start_ns: Int64s, launch_ns: Int64s, known: Bools) -> tuple[Int64s, Int64s]:
    """Behind which moment, and until which, each row was launched: as the rows around it on its stream tell."""
    after, until = np.full(len(place), np.iinfo(np.int64).min), start_ns.copy()
    order = np.lexsort((start_ns, place))
    for here in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        before = np.where(known[here], launch_ns[here], np.iinfo(np.int64).min)
        after[here] = np.maximum.accumulate(before)
        behind = np.where(known[here], launch_ns[here], np.iinfo(np.int64).max)
        until[here] = np.minimum(until[here], np.minimum.accumulate(behind[::-1])[::-1])
    return after, until


def _usual_calls(work: Int32s, call: Int32s, names: int) -> Int64s:
    """By the name of a row of work that of the call which launches it as a rule, shape (names,); -1: not known."""
    usual = np.full(names, -1, np.int64)
    both, count = np.unique(work.astype(np.int64) * names + call, return_counts=True)
    rising = np.argsort(count, kind="stable")
    usual[both[rising] // names] = both[rising] % names
    return usual


def _pair_up(rows: Rows, work: Int64s, wanted: tuple[Int64s, Int64s, Int64s], calls: Int64s) -> tuple[Int64s, Int64s]:
    """Rows of `work` and their calls, as positions: each call goes to the row that can wait least for a later one.

    `wanted`: the name of the call of each row, behind which moment it lies, and until which.
    """
    name, after_ns, until_ns = wanted
    says, start_ns = rows.correlation >= 0, rows.start_ns
    rising, by_time = np.argsort(after_ns, kind="stable"), np.argsort(start_ns[calls], kind="stable")
    of_work = (after_ns, name, says[work], until_ns, start_ns[work], work)
    coming = zip(*(one[rising].tolist() for one in of_work), strict=True)
    of_calls = (start_ns[calls], rows.name[calls], says[calls], calls)
    upcoming = next(coming, None)
    waiting: dict[tuple[int, bool], list[tuple[int, int, int]]] = defaultdict(list)
    pairs = []
    for moment, of, is_said, call in zip(*(one[by_time].tolist() for one in of_calls), strict=True):
        while upcoming is not None and upcoming[0] < moment:
            heappush(waiting[upcoming[1:3]], upcoming[3:])
            upcoming = next(coming, None)
        # Of two that both say a number it is not the same one.
        queues = [waiting[of, False]] if is_said else [waiting[of, False], waiting[of, True]]
        for queue in queues:
            while queue and queue[0][0] < moment:
                heappop(queue)
        queue = min(filter(None, queues), default=[])
        if queue:
            pairs.append((heappop(queue)[-1], call))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
