"""Joins device work with the host call that launched it.

Guarantees: pure; of several calls with one correlation (the runtime's with the driver's inside) the earliest, then the
longest counts; one call may have launched many rows (a CUDA graph).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import NO_ROWS, Category, Int64s, Rows, Trace

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LaunchCalls:
    """All calls that have a correlation, one per correlation, sorted by it."""

    calls: Rows

    def of(self, rows: Rows) -> Positions:
        """For each of `rows` the position of its call in `calls`; -1 where the trace has none. Shape (n,)."""
        if len(self.calls) == 0:
            return np.full(len(rows), -1, np.intp)
        at = np.minimum(np.searchsorted(self.calls.correlation, rows.correlation), len(self.calls) - 1)
        found = (self.calls.correlation[at] == rows.correlation) & (rows.correlation >= 0)
        return np.where(found, at, -1)


NO_CALLS: Final = LaunchCalls(NO_ROWS)


def find_calls(trace: Trace) -> LaunchCalls:
    """The runtime calls that launched work, one per correlation: its first, of equal ones the longest."""
    calls = trace.rows.select((trace.rows.category == Category.RUNTIME) & (trace.rows.correlation >= 0))
    calls = calls.take(order_by(calls.correlation, calls.start_ns, -calls.duration_ns))
    first: Int64s = np.diff(calls.correlation, prepend=-1)
    return LaunchCalls(calls.select(first != 0))
