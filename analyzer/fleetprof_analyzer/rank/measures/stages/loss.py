"""The place of the loss in a forward pass: within the model's range or behind its last layer (docs/measures.md#stages).

Guarantees: pure; found by the name of an operator, else by the functions that begin the backward pass.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between
from fleetprof_analyzer.trace import stage_names as names
from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Rows, Trace

_LAST_OPERATORS: Final = 6
_MOST_FUNCTIONS: Final = 32

Span = tuple[int, int]


def find_loss(trace: Trace, thread: MainThread, rows: Rows, model: Sequence[Span], end: int) -> int:
    """The moment at which the loss begins behind the model; `end` where there is none."""
    if model:
        after = max(b for _, b in model)
        following = rows.start_ns[rows.start_ns >= after]
        if len(following):
            return int(following[0])
        if len(find_losses(trace, rows, model)):
            return end
    reached, layer = _last_of_loss(trace, thread, end)
    made = between(thread.operators, int(rows.start_ns[0]), end)
    # An operator that made the node of a layer as well (`linear` ends with a view) is that layer.
    behind = int(np.searchsorted(rows.start_ns, at, side="right")) if (at := _made_at(made, layer)) is not None else 0
    # Several parts of a batch may go forward one after the other, and the first one's loss is no end of it.
    behind = max(behind, _last_layer(trace, thread, rows))
    named = where_name(rows, trace.names, matcher(names.LOSS_OPERATOR))
    named[: behind or max(0, len(rows) - _LAST_OPERATORS)] = False
    if named.any():
        return int(rows.start_ns[named][0])
    if (start := _made_at(made, reached)) is not None:
        around = max(behind, int(np.searchsorted(rows.start_ns, start, side="right")) - 1)
        return int(rows.start_ns[around]) if around < len(rows) else end
    return end


def _last_layer(trace: Trace, thread: MainThread, rows: Rows) -> int:
    """The number of rows up to the last layer by name that autograd goes back through."""
    trains = np.isin(rows.start_ns, thread.top.start_ns[thread.trains])
    layers = np.flatnonzero(trains & where_name(rows, trace.names, names.is_layer))
    return int(layers[-1]) + 1 if len(layers) else 0


def part_loss(trace: Trace, rows: Rows, top: Rows, trains: Bools, loss: Span, least_ns: int) -> Iterator[Span]:
    """The parts of the loss, which ends with what autograd goes back through. Metrics and logs may follow.

    They may also stand before its last operators (a framework divides the loss that it has logged): a stretch of that
    length without an operator of the loss, in which operators run for less than half of the time, is no part of it.
    """
    start, last = loss
    first, behind = np.searchsorted(rows.start_ns, (start, last)).tolist()
    rows = rows.part(first, behind)
    counts = trains[np.searchsorted(top.start_ns, rows.start_ns)]  # outermost operators: no two begin at one time
    counts |= where_name(rows, trace.names, matcher(names.LOSS_OPERATOR))
    if not counts.any():
        yield start, last
        return
    own = np.flatnonzero(counts)
    begins, ends = rows.end_ns[own[:-1]], rows.start_ns[own[1:]]
    worked = np.concatenate(([0], np.cumsum(rows.end_ns - rows.start_ns)))
    apart = (ends - begins >= least_ns) & (2 * (worked[own[1:]] - worked[own[:-1] + 1]) < ends - begins)
    for begin, end in zip(begins[apart].tolist(), ends[apart].tolist(), strict=True):
        yield start, begin
        start = end
    yield start, int(rows.end_ns[own[-1]])


def _last_of_loss(trace: Trace, thread: MainThread, end: int) -> tuple[int, int]:
    """Numbers of the last of the backward pass's leading functions that look like a loss, and of the layer behind."""
    reached = -1
    first = int(np.searchsorted(thread.autograd.start_ns, end))
    later = thread.autograd.part(first, first + 8 * _MOST_FUNCTIONS)
    rows_of = [(trace.names[name], at) for name, at in zip(later.name.tolist(), later.detail.tolist(), strict=True)]
    functions = [(function, number) for name, number in rows_of if (function := names.function_of(name))]
    functions = functions or [(name, number) for name, number in rows_of if names.is_function(name)]
    for function, number in functions[:_MOST_FUNCTIONS]:
        if not names.is_loss_like(function):
            return reached, number
        reached = number if number >= 0 else reached
    return reached, -1


def _made_at(operators: Rows, number: int) -> int | None:
    """The time at which the node of that number was made: those before the last with it made nothing, but carry it."""
    made = operators.start_ns[operators.detail == number] if number >= 0 else operators.start_ns[:0]
    return int(made[-1]) if len(made) else None


def find_losses(trace: Trace, rows: Rows, model: Sequence[Span]) -> Rows:
    """The operators within the model's range that are a loss by name."""
    if not model:
        return rows.part(0, 0)
    starts, ends = np.array(model, np.int64).T
    within = rows.select(covered(rows.start_ns, union(starts, ends)))
    return within.select(where_name(within, trace.names, matcher(names.LOSS_OPERATOR)))
