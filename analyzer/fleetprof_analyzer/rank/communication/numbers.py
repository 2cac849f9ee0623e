"""The calls between which a call was made whose row a recorder has lost: drivers number calls as these are made.

Guarantees: pure; says nothing where the numbers of the calls that are there do not rise with time.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows

_FEWEST: Final = 8  # calls: fewer in any other order rise by chance in one case of thousands
_RISING_SHARE: Final = 0.99  # of neighbours; two threads may take numbers and begin in another order


@dataclass(frozen=True, slots=True)
class CallsAround:
    """For each number when the call before it began, and when the one behind it did; shapes (n,).

    The smallest and the largest integer where there is none. `call_start_ns` and `call_end_ns` are of all calls, with
    or without a number, in order.
    """

    before_ns: Int64s
    behind_ns: Int64s
    call_start_ns: Int64s
    call_end_ns: Int64s

    def latest_ns(self, number: Int64s, begun_ns: Int64s) -> Int64s:
        """The latest moments at which calls of these numbers may have been made, whose work has `begun_ns`, in order.

        A wait whose row is lost as well would come after an earlier one. But a thread in a call makes no other.
        """
        latest = np.minimum(self.behind_ns - 1, begun_ns)
        at = np.searchsorted(self.call_start_ns, latest, side="right") - 1
        inside = (at >= 0) & (self.call_end_ns[np.maximum(at, 0)] > latest)
        latest = np.where(inside, self.call_start_ns[np.maximum(at, 0)] - 1, latest)
        order = np.argsort(number, kind="stable")
        place = np.unique(number, return_inverse=True)[1][order]
        in_turn = np.minimum.accumulate((latest[order] - place)[::-1])[::-1] + place
        latest[order] = np.maximum(in_turn, self.before_ns[order])
        return latest


def calls_around(rows: Rows, number: Int64s) -> CallsAround | None:
    """The calls of `rows` around those of these numbers, of which -1 tells nothing."""
    calls = rows.select(rows.category == Category.RUNTIME)
    numbered = calls.select(calls.correlation >= 0)
    if len(numbered) < _FEWEST:
        return None
    numbered = numbered.take(order_by(numbered.correlation, numbered.start_ns))
    # With the runtime's call the driver's inside it has the same number.
    if (np.diff(numbered.start_ns) >= 0).mean() < _RISING_SHARE:
        return None
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    start = np.maximum.accumulate(numbered.start_ns)
    before = np.insert(start, 0, least)[np.searchsorted(numbered.correlation, number)]
    behind = np.append(start, most)[np.searchsorted(numbered.correlation, number, side="right")]
    calls = calls.take(order_by(calls.start_ns, -calls.duration_ns))
    return CallsAround(
        np.where(number >= 0, before, least), np.where(number >= 0, behind, most), calls.start_ns, calls.end_ns
    )
