"""The time of the training thread's operators by name, and what they were given where shapes were recorded.

Tells more work from a slow core, and names what exceeds.

Guarantees: pure; a row's own time is without the rows that it encloses; at most `MOST_NAMES` names of a rank, those
with the most own time; counted within the iterations only, so that ranks compare.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from fleetprof_analyzer.trace import stage_names
from fleetprof_analyzer.trace.classes import is_host_communication
from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int32s, Int64s, Rows, Trace

MOST_NAMES: Final = 64
_LONGEST_NAME: Final = 120
_DEEPEST: Final = 64
_LEAST_SAID: Final = 0.9  # of the calls


class OperatorUse(msgspec.Struct, frozen=True):
    """Operators of one name on one rank over its iterations; own times, ns.

    `of_parameters`: in the optimizer's step, or where gradients enter and leave their buckets; their size is that of
    the model, whatever the batch. `elements` are those of each of the first inputs, on average over the calls that say
    theirs; empty where less than nine in ten do. `inputs` are the dimensions of those calls with most of them, cut.
    """

    name: str
    of_parameters: bool
    count: int
    time_ns: int
    median_ns: int
    elements: tuple[int, ...] = ()
    inputs: str = ""


def measure_operators(trace: Trace, thread: Rows, bounds: Sequence[tuple[int, int]]) -> list[OperatorUse]:
    """The operators of the training thread's rows that begin in one of `bounds`, [start, end) each, sorted."""
    operators = thread.category == Category.OPERATOR
    # What communicates also waits for other ranks: it is no work.
    rows = thread.select(operators & ~where_name(thread, trace.names, is_host_communication))
    rows = rows.take(order_by(rows.start_ns, -rows.duration_ns))
    if not bounds or len(rows) == 0:
        return []
    own = own_times(rows.start_ns, rows.end_ns)
    starts, ends = (np.array(side, np.int64) for side in zip(*bounds, strict=True))
    at = np.searchsorted(starts, rows.start_ns, side="right") - 1
    inside = (at >= 0) & (rows.start_ns < ends[np.maximum(at, 0)])
    of_parameters = _of_parameters(trace, thread, rows)
    rows, own, of_parameters = rows.select(inside), own[inside], of_parameters[inside]
    keys, owner = np.unique(rows.name.astype(np.int64) * 2 + of_parameters, return_inverse=True)
    total = np.bincount(owner, own, len(keys)).astype(np.int64)
    by_owner, last = np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=len(keys)))
    found = []
    for number in np.argsort(-total, kind="stable")[:MOST_NAMES].tolist():
        mine = by_owner[last[number - 1] if number else 0 : last[number]]
        times = own[mine]
        name, parameters = divmod(int(keys[number]), 2)
        found.append(
            OperatorUse(
                trace.names[name][:_LONGEST_NAME], bool(parameters), len(times), int(total[number]),
                int(np.median(times)), *_read_inputs(trace, rows.shape[mine]),
            )
        )  # fmt: skip
    return found


def _read_inputs(trace: Trace, shapes: Int32s) -> tuple[tuple[int, ...], str]:
    """(mean elements of each input, rounded down; the dimensions with most elements) of calls with these `shape`s."""
    numbers, counts = np.unique(shapes[shapes >= 0], return_counts=True)
    total = int(counts.sum())
    if total == 0 or total < _LEAST_SAID * len(shapes):
        return (), ""
    known_inputs = [
        (trace.inputs[number], count) for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
    ]
    width = max(len(inputs.elements) for inputs, _ in known_inputs)
    sums = [0] * width
    for inputs, count in known_inputs:
        for place, elements in enumerate(inputs.elements):
            sums[place] += count * elements
    return tuple(one // total for one in sums), max(known_inputs, key=lambda one: one[1] * sum(one[0].elements))[0].text


def own_times(start_ns: Int64s, end_ns: Int64s) -> Int64s:
    """Durations without the rows inside, of rows of one thread sorted by start, the longer first; shape (n,).

    Rows that lie deeper than `_DEEPEST` count with the one around them.
    """
    depth = np.arange(len(start_ns)) - np.searchsorted(np.sort(end_ns), start_ns, side="right")
    own = end_ns - start_ns
    for level in range(1, min(int(depth.max(initial=0)), _DEEPEST) + 1):
        inner = np.flatnonzero(depth == level)
        outer = np.flatnonzero(depth == level - 1)
        parent = outer[np.maximum(np.searchsorted(outer, inner) - 1, 0)]
        np.subtract.at(own, parent, end_ns[inner] - start_ns[inner])
    return np.asarray(np.maximum(own, 0))


def _of_parameters(trace: Trace, thread: Rows, rows: Rows) -> Bools:
    steps = thread.select(where_name(thread, trace.names, matcher(stage_names.OPTIMIZER_STEP)))
    in_step = covered(rows.start_ns, union(steps.start_ns, steps.end_ns))
    updates = where_name(rows, trace.names, matcher(stage_names.UPDATE))
    return np.asarray((in_step & updates) | where_name(rows, trace.names, matcher(stage_names.BEHIND)))
