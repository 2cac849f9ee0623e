"""The backward pass of an iteration: all that belongs to it, and the forward passes that run within it.

Guarantees: pure; a pass reaches neither over an optimizer's step nor into the next forward pass.
"""

from collections.abc import Sequence

import numpy as np

from fleetprof_analyzer.rank.measures.stages.loss import Span
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between
from fleetprof_analyzer.trace import stage_names as names
from fleetprof_analyzer.trace.intervals import Union, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Rows, Trace


def extend(trace: Trace, thread: MainThread, top: Rows, trains: Bools, first: int, last: int, limit: int) -> Span:
    """A backward pass with what belongs to it before and after.

    Its seed; autograd's threads; the collectives that the main thread waits for in silence: they begin before its next
    operator, and it waits no longer than that; and what backward() does behind them.
    """
    before = int(np.searchsorted(top.end_ns, first, side="right")) - 1
    if before >= 0 and names.SEED.search(trace.names[top.name[before]]):
        first = int(top.start_ns[before])
    around = thread.optimizer.end_ns[(thread.optimizer.start_ns <= first) & (thread.optimizer.end_ns > first)]
    limit = min([limit, *around.tolist()])
    for starts in (thread.optimizer.start_ns, top.start_ns[trains]):
        following = int(np.searchsorted(starts, last))
        limit = min(limit, int(starts[following])) if following < len(starts) else limit
    following = int(np.searchsorted(top.start_ns, last))
    silent = min(limit, int(top.start_ns[following])) if following < len(top) else limit
    begun = between(thread.collectives, first, max(silent, min(limit, last + 1)))
    # What a stage of a pipeline receives meanwhile is for what it does next.
    begun = begun.select(~where_name(begun, trace.names, matcher(names.POINT_TO_POINT)))
    if len(begun):
        last = max(last, min(int(begun.end_ns.max()), silent))
    for rows in (between(thread.beside, first, limit), between(thread.behind, first, limit)):
        if len(rows):
            last = max(last, int(rows.end_ns.max()))
    updates = between(thread.updates, last, limit)
    updates = updates.select(~where_name(updates, trace.names, matcher(names.SCALES)))
    if limit in thread.optimizer.start_ns:
        last = max(last, _reduced(trace, thread, last, limit))
    elif len(updates):  # nothing marks the step
        last = max(last, _reduced(trace, thread, last, int(updates.start_ns[0])))
    return first, min(last, limit)


def _reduced(trace: Trace, thread: MainThread, last: int, step: int) -> int:
    """The time at which gradients are summed up over the ranks between a backward pass and the optimizer's step.

    That is before anything is measured of them, to clip them or to see whether they are finite; 0 where none are.
    """
    begin, end = np.searchsorted(thread.top.start_ns, (last, step)).tolist()
    if not thread.reduces[begin:end].any():
        return 0
    rows = thread.top.part(begin, end)
    measured = where_name(rows, trace.names, matcher(names.MEASURES))
    reduces = thread.reduces[begin:end] & ~np.logical_or.accumulate(measured)
    if not reduces.any():
        return 0
    # They are copied back up to the first measure.
    until = int(rows.start_ns[measured.argmax()]) if measured.any() else 0
    return max(until, int(thread.reached_ns[begin:end][reduces].max()))


def find_forward_within(thread: MainThread, trained: Rows, passes: Sequence[Span], least_ns: int) -> Union:
    """Times in which the main thread goes forward while a backward pass runs: a pipeline's next part, not yet its turn.

    `trained`: its operators that a backward pass goes back through. A pass on the thread itself is interrupted by them;
    one on autograd's threads goes on beside.
    """
    starts, ends = np.array(passes, np.int64).reshape(-1, 2).T
    at = np.searchsorted(ends, trained.start_ns, side="right")
    rows = trained.select(np.append(starts, np.iinfo(np.int64).max)[at] < trained.end_ns)
    if len(rows) == 0:
        return rows.start_ns, rows.end_ns
    behind, before = rows.start_ns[1:], rows.end_ns[:-1]
    functions = thread.autograd.start_ns[thread.autograd.place == thread.place]
    apart = (behind - before >= least_ns) | (np.searchsorted(functions, behind) > np.searchsorted(functions, before))
    return union(rows.start_ns, np.append(np.where(apart, before, np.maximum(behind, before)), rows.end_ns[-1]))
