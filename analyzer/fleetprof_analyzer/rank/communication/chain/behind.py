"""Finds operations that begin only after one on another stream has ended, as the reduction of what was just scattered.

No row says so: the stream waits for an event of the other. What shows it is that an operation never begins before the
other's end, and begins right behind it whenever nothing else holds it up. Guarantees: pure; the operation before is
launched earlier; one that explains nothing is not named.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Int32s, Int64s

_TOLERANCE_NS: Final = 2_000
_LEAST_LATE_NS: Final = 10_000  # on average: what begins sooner waits for nothing
_KEPT_SHARE: Final = 0.95
_UNEXPLAINED_SHARE: Final = 0.3


def find_behind(place: Int32s, ready_ns: Int64s, start_ns: Int64s, end_ns: Int64s, position: Int64s) -> Int64s:
    """For each operation, in launch order, the one on another place that it begins behind, shape (n,); -1: none.

    `ready_ns` is when it could have begun by all else; `position` numbers operations within their iteration, the same
    number for the same operation of the program, -1 where iterations differ.
    """
    count = len(place)
    behind = np.full(count, -1, np.int64)
    last = {int(other): _last_before(place == other) for other in np.unique(place)}
    late = np.maximum(start_ns - ready_ns, 0)
    order = np.argsort(position, kind="stable")
    cuts = np.flatnonzero(np.diff(position[order], prepend=-2))
    for here in np.split(order, cuts[1:]):
        if len(here) == 0 or position[here[0]] < 0 or late[here].mean() < _LEAST_LATE_NS:
            continue
        least = _UNEXPLAINED_SHARE * float(late[here].sum())
        for other, before in last.items():
            known = here[before[here] >= 0]
            if other == place[here[0]] or len(known) == 0:
                continue
            ended = end_ns[before[known]]
            kept = start_ns[known] >= ended - _TOLERANCE_NS
            left = float(np.maximum(start_ns[known] - np.maximum(ended, ready_ns[known]), 0).sum())
            left += float(late[here].sum() - late[known].sum())
            if kept.mean() >= _KEPT_SHARE and left <= least:
                least = left
                behind[here] = -1
                behind[known[kept]] = before[known[kept]]
    return behind


def _last_before(chosen: np.typing.NDArray[np.bool_]) -> Int64s:
    """For each position the last chosen one before it, -1: none."""
    numbers = np.where(chosen, np.arange(len(chosen)), -1)
    return np.concatenate(([-1], np.maximum.accumulate(numbers)[:-1])).astype(np.int64)
