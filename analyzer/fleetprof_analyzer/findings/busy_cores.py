"""Tells whether the cores of the ranks are all busy: more workers then win nothing, and sending waits for a core.

Guarantees: pure; where nothing was sampled they are not said to be busy.
"""

from collections.abc import Sequence
from statistics import median_low
from typing import Final

from fleetprof_api.report.report import Rank

_BUSY_PERMILLE: Final = 900
_WAITED_PERMILLE: Final = 50  # of what was sampled of the training thread


def are_cores_busy(ranks: Sequence[Rank]) -> bool:
    """Judges the median rank: its host is busy, or its training thread waits for a core."""
    known = [rank.cores for rank in ranks if rank.cores is not None]
    busy = [use.host_busy_permille for use in known if use.host_busy_permille is not None]
    waited = [1000 * use.waited_ns // use.sampled_ns for use in known if use.waited_ns is not None and use.sampled_ns]
    return (bool(busy) and median_low(busy) >= _BUSY_PERMILLE) or (
        bool(waited) and median_low(waited) >= _WAITED_PERMILLE
    )
