"""Which ranks of the job left no trace at all; nothing shows whether they are late.

From the members of process groups, the job's size where traces say it, and gaps in the ranks' own numbers. Guarantees:
pure; a rank whose trace is cut short was captured.
"""

from collections.abc import Sequence, Set
from typing import Final

from fleetprof_analyzer.rank.communication.operations import RankOperations

_MOST: Final = 10_000  # said; sizes and ranks come from files


def find_missing(
    operations: Sequence[RankOperations], unmatched: Sequence[int], delivered: Set[int | None]
) -> list[int]:
    """Sorted. `unmatched` are members of groups of whom no operation was matched; `delivered` ranks have a trace."""
    known = [rank for rank in delivered if rank is not None]
    size = max([one.world_size or 0 for one in operations] + [rank + 1 for rank in known], default=0)
    if None in delivered:
        size = 0  # one of these may be any rank
    expected = {*unmatched, *range(min(size, _MOST))}
    return sorted(expected - set(known))
