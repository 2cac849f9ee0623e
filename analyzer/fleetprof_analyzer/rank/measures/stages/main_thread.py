"""The main thread of a rank's host, seen as a training loop: its operators, marks, and the backward passes beside it.

Guarantees: pure; sorted by start; None where the trace holds no operators to go by.
"""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace import stage_names as names
from fleetprof_analyzer.trace.classes import is_data_loading, is_host_annotation
from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import distinct, order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_PROFILER_STEP: Final = re.compile(r"^ProfilerStep")
_UPLOAD: Final = re.compile(r"HtoD|HostToDevice")
_COPY: Final = re.compile(r"HtoD|HostToDevice|DtoH|DeviceToHost")
_SAMPLED_PERMILLE: Final = 500
# What reads a number, as a printed loss, prepares no batch.
_READS: Final = re.compile(r"^aten::(?:item|_local_scalar_dense|is_nonzero)$")


@dataclass(frozen=True, slots=True)
class MainThread:
    """Rows of the main thread by kind, and of autograd anywhere.

    `top` are its outermost operators; `trains` tells which of them hold an operator that autograd will go back through,
    `uploads` which launch a copy from the host to the device, `copies` one in either direction; `reached_ns` when the
    thread goes on after each: with its end, or with that of a collective which it began and waits for; `reduces` and
    `gathers`, `passes_on` which sum up over ranks, gather into one tensor, and send or receive.
    """

    place: int
    operators: Rows
    top: Rows
    trains: Bools
    uploads: Bools
    copies: Bools
    reached_ns: Int64s
    reduces: Bools
    gathers: Bools
    passes_on: Bools
    data: Rows
    zero_grad: Rows
    optimizer: Rows
    model: Rows
    begun: Rows  # marks that a module's forward pass begins, and nothing of its end
    autograd: Rows  # on any thread
    beside: Rows  # all rows of the threads that run autograd for this one
    behind: Rows  # of backward(), behind autograd's last function
    collectives: Rows  # on any thread
    begun_ns: Int64s  # when this thread began one
    received_ns: Int64s  # when what another rank sent was there
    helps: Bools  # which places are those threads, shape (places,)
    updates: Rows  # in-place operators that are no part of a backward pass
    ran_per_row: float  # operators, for each that is in the trace: of a sample more than one


def find_main_thread(trace: Trace, calls: LaunchCalls) -> MainThread | None:
    """The thread with the step ranges; else with the optimizer; else with most operators that autograd numbers."""
    rows, on_host = trace.rows, ~trace.rows.on_device
    annotates = where_name(rows, trace.names, is_host_annotation)
    operators = (rows.category == Category.OPERATOR) & ~annotates
    numbered = operators & (rows.detail >= 0)
    if not numbered.any():
        return None
    autograd = on_host & where_name(rows, trace.names, matcher(names.AUTOGRAD))
    place = _choose(trace, rows, numbered & ~autograd)
    here = on_host & (rows.place == place)
    passes = _sorted(rows.select(autograd))
    own = _sorted(rows.select(here & operators & ~autograd))
    own = own.select(~_under(own, rows.select(autograd & here)) | _goes_ahead(own, passes, place))
    top = own.select(_outermost(own))
    helps = np.zeros(len(trace.places), np.bool_)
    helps[passes.place] = True
    helps[place] = False

    def named(pattern: re.Pattern[str], mask: Bools) -> Rows:
        return _sorted(rows.select(mask & where_name(rows, trace.names, matcher(pattern))))

    collectives, steps = named(names.COLLECTIVE, on_host), named(names.OPTIMIZER_STEP, here)
    communicates = own.start_ns[where_name(own, trace.names, matcher(names.COMMUNICATES))]
    return MainThread(
        place=place,
        operators=own,
        top=top,
        trains=_holds(top, _made_nodes(own, passes)),
        uploads=_holds(top, _copy_calls(trace, calls, place, _UPLOAD)),
        copies=_holds(top, _copy_calls(trace, calls, place, _COPY)) & ~where_name(top, trace.names, matcher(_READS)),
        reached_ns=_reach(top, where_name(top, trace.names, matcher(names.COMMUNICATES)), collectives),
        reduces=where_name(top, trace.names, matcher(names.REDUCES)),
        gathers=_gathers(trace, top, marked=len(steps) > 0),
        passes_on=where_name(top, trace.names, matcher(names.PASSES_ON)),
        data=_sorted(rows.select(here & where_name(rows, trace.names, is_data_loading))),
        zero_grad=named(names.ZERO_GRAD, here),
        optimizer=steps,
        model=named(names.MODEL, here),
        begun=named(names.MODEL_BEGINS, here),
        autograd=passes,
        beside=_sorted(rows.select(on_host & helps[rows.place])),
        helps=helps,
        behind=named(names.BEHIND, here),
        collectives=collectives,
        received_ns=np.sort(named(names.RECEIVED, on_host).end_ns),
        begun_ns=np.sort(np.append(collectives.start_ns[collectives.place == place], communicates)),
        updates=own.select(where_name(own, trace.names, matcher(names.UPDATE))),
        ran_per_row=_ran_per_row(trace),
    )


def _ran_per_row(trace: Trace) -> float:
    permille = trace.recorded_permille
    return 1.0 if permille is None or permille >= _SAMPLED_PERMILLE else 1000 / max(1, permille)


def _gathers(trace: Trace, top: Rows, *, marked: bool) -> Bools:
    """Operations that join parameters of which each rank updated a part; broadcasts too where no step is marked."""
    gathers = where_name(top, trace.names, matcher(names.GATHERS))
    return gathers if marked else gathers | where_name(top, trace.names, matcher(names.SENDS_TO_ALL))


def between(rows: Rows, start: int, end: int) -> Rows:
    """The rows, sorted by start, that begin in [start, end); no copies."""
    first, last = np.searchsorted(rows.start_ns, (start, end))
    return rows.part(int(first), int(last))


def _choose(trace: Trace, rows: Rows, numbered: Bools) -> int:
    for mark in (_PROFILER_STEP, names.OPTIMIZER_STEP):
        found = rows.place[~rows.on_device & where_name(rows, trace.names, matcher(mark))]
        if len(found):
            return int(np.bincount(found).argmax())
    return int(np.bincount(rows.place[numbered if numbered.any() else rows.detail >= 0]).argmax())


def _sorted(rows: Rows) -> Rows:
    """By start, the longer first."""
    return rows.take(order_by(rows.start_ns, -rows.duration_ns))


def _outermost(rows: Rows) -> Bools:
    """Rows that no earlier row of the same thread encloses."""
    if len(rows) == 0:
        return np.zeros(0, np.bool_)
    reached = np.maximum.accumulate(rows.end_ns)
    return np.concatenate(([True], rows.start_ns[1:] >= reached[:-1]))


def _reach(top: Rows, communicates: Bools, collectives: Rows) -> Int64s:
    """Ends of the outermost operators, for those that communicate with the wait: until the next one at most."""
    following = np.append(top.start_ns[1:], np.iinfo(np.int64).max)[: len(top)]
    first, last = (np.searchsorted(collectives.start_ns, times) for times in (top.start_ns, following))
    waits = np.flatnonzero(communicates & (last > first))
    reached = top.end_ns.copy()
    if len(waits):
        windows = np.stack((first[waits], last[waits]), axis=1).ravel()
        longest = np.maximum.reduceat(np.append(collectives.end_ns, 0), windows)[::2]
        reached[waits] = np.maximum(reached[waits], np.minimum(longest, following[waits]))
    return reached


def _under(rows: Rows, covering: Rows) -> Bools:
    return covered(rows.start_ns, union(covering.start_ns, covering.end_ns))


def _holds(top: Rows, times: Int64s) -> Bools:
    """A mask of the disjoint rows that hold at least one of the times."""
    times = np.sort(times)
    return np.asarray(np.searchsorted(times, top.end_ns) > np.searchsorted(times, top.start_ns))


def _made_nodes(own: Rows, autograd: Rows) -> Int64s:
    """The times at which operators made what autograd goes back through.

    An operator that makes nothing carries the number of the next one that does, so the last with a number counts.
    """
    numbered = own.select(own.detail >= 0)
    wanted = distinct(autograd.detail[autograd.detail >= 0])
    if len(wanted):
        numbered = numbered.select(np.isin(numbered.detail, wanted))
    numbered = numbered.take(np.lexsort((numbered.start_ns, numbered.detail)))
    last = np.append(numbered.detail[1:] != numbered.detail[:-1], True)[: len(numbered)]
    return np.asarray(numbered.start_ns[last])


def _goes_ahead(own: Rows, passes: Rows, place: int) -> Bools:
    """A mask of operators within a backward pass that made what a later one goes back through: they are forward.

    What is computed again for a pass (checkpointing) is used up in it, or not at all.
    """
    here = passes.select(passes.place == place)
    starts, ends = union(here.start_ns, here.end_ns)
    around = np.append(ends, 0)[np.searchsorted(starts, own.start_ns, side="right") - 1]
    used = passes.select(passes.detail >= 0)
    used = used.take(np.lexsort((used.start_ns, used.detail)))
    last = np.append(used.detail[1:] != used.detail[:-1], True)[: len(used)]
    numbers, times = used.detail[last], used.start_ns[last]
    if len(numbers) == 0:
        return np.zeros(len(own), np.bool_)
    at = np.minimum(np.searchsorted(numbers, own.detail), len(numbers) - 1)
    later = (numbers[at] == own.detail) & (times[at] >= around)
    return np.asarray(later & np.isin(own.start_ns, _made_nodes(own, passes)))


def _copy_calls(trace: Trace, calls: LaunchCalls, place: int, direction: re.Pattern[str]) -> Int64s:
    """The times at which this thread called for copies between host and device."""
    copies = trace.rows.select(trace.rows.category == Category.MEMCPY)
    copies = copies.select(where_name(copies, trace.names, matcher(direction)))
    position = calls.of(copies)
    made = calls.calls.take(position[position >= 0])
    return np.asarray(made.start_ns[made.place == place])
