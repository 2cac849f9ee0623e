"""Sorts what is nearly sorted already, as the rows of a trace are.

Guarantees: the same order as numpy's lexsort and the same values as its unique, in about a third of their time on such
input: a stable sort merges what is in runs, and only rows with equal keys are looked at again.
"""

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.trace import Int32s, Int64s

Positions = npt.NDArray[np.intp]


def order_by(first: Int64s | Int32s, *then: Int64s) -> Positions:
    """The positions that sort by `first`, then by each of `then`; shape (n,). Equal rows keep their order."""
    order = np.argsort(first, kind="stable")
    ordered = first.take(order)
    same = ordered[1:] == ordered[:-1]
    if not then or not same.any():
        return order
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = same
    tied[:-1] |= same
    rows = order[tied]
    order[tied] = rows[np.lexsort((*(key[rows] for key in reversed(then)), first[rows]))]
    return order


def grouped(groups: Int32s, order: Positions) -> Positions:
    """The positions of `order` by their group, numbers from 0 on, in this order within each."""
    # numpy sorts 16 bits by counting.
    small = groups.astype(np.uint16) if len(groups) and groups.max() < 1 << 16 else groups
    return order.take(np.argsort(small.take(order), kind="stable"))


def distinct(values: Int64s) -> Int64s:
    """The values without repetition, ascending."""
    ordered = np.sort(values, kind="stable")
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered.compress(new)
