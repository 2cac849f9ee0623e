"""Whether the clocks of host and device fit: work cannot begin before it is launched.

Guarantees: pure; where they do not, no cause of idle time and no delay of a launch can be told.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls

_TOLERANCE_NS: Final = 10_000
_LEAST_PERMILLE: Final = 20  # of the work whose launch is known


class Misfit(NamedTuple):
    """So much work of all begins before its launch, by this much at most."""

    early: int
    of: int
    most_ns: int


def find_misfit(works: Sequence[DeviceWork], calls: LaunchCalls) -> Misfit | None:
    """What shows that the clocks do not fit; None where nothing does."""
    early, known_rows, most_ns = 0, 0, 0
    for work in works:
        position = calls.of(work.rows)
        known = position >= 0
        ahead = calls.calls.start_ns[position[known]] - work.rows.start_ns[known]
        early += int((ahead > _TOLERANCE_NS).sum())
        known_rows += len(ahead)
        most_ns = max(most_ns, int(np.max(ahead, initial=0)))
    return Misfit(early, known_rows, most_ns) if early and 1000 * early >= _LEAST_PERMILLE * known_rows else None
