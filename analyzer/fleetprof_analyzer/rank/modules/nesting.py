"""Rows of the host inside each other.

Guarantees: pure; of two rows on one thread the one that began earlier is around the other, where it ends later.
"""

from bisect import bisect_right
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import ROUNDED_NS, Category, Int64s, Rows

NOWHERE: Final = -1


def sort_host(rows: Rows) -> Rows:
    """The rows of operators and calls of the runtime, each before those inside it."""
    host = rows.select((rows.category == Category.OPERATOR) | (rows.category == Category.RUNTIME))
    return host.take(np.lexsort((-host.duration_ns, host.start_ns, host.place)))


def nest(rows: Rows) -> tuple[list[int], Int64s]:
    """The operator around each row, NOWHERE for the outermost, and each row's time without operators inside it."""
    starts, ends, places = rows.start_ns.tolist(), rows.end_ns.tolist(), rows.place.tolist()
    is_operator = (rows.category == Category.OPERATOR).tolist()
    own = rows.duration_ns.tolist()
    parents = [NOWHERE] * len(starts)
    stack: list[int] = []
    reach: list[int] = []  # the ends of the stack's rows, negative and so ascending
    place = NOWHERE
    for at, start in enumerate(starts):
        if places[at] != place:
            place = places[at]
            stack.clear()
            reach.clear()
        while stack and ends[stack[-1]] <= start:
            stack.pop()
            reach.pop()
        # A row may seem to end later than the one around it, by what times are rounded to.
        inside_of = bisect_right(reach, ROUNDED_NS - ends[at])
        if inside_of:
            around = parents[at] = stack[inside_of - 1]
            if is_operator[at]:
                own[around] -= min(ends[at], ends[around]) - start
        if is_operator[at]:
            # What one that ends later could be around lies in this one as well.
            while stack and ends[stack[-1]] <= ends[at]:
                stack.pop()
                reach.pop()
            stack.append(at)
            reach.append(-ends[at])
    return parents, np.maximum(np.array(own, np.int64), 0)
