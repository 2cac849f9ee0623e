"""Chooses the few ranks whose whole trace is worth storing when all others sent only their summary.

Guarantees: pure; at most `MOST`, the most interesting first; a median rank is among them, to compare with; the same
summaries give the same choice in any order.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report import Rank

MOST: Final = 8
_FEWEST_TO_CHOOSE: Final = 3


def choose_whole_traces(ranks: Sequence[Rank], suspects: Sequence[int] = ()) -> list[int]:
    """Rank numbers: the suspects, the rank that waited least for the others, and one that waited as most do.

    In synchronous training all wait for the slowest, which itself waits least (docs/measures.md#whole-traces).
    """
    known = {rank.rank: rank for rank in ranks if rank.rank is not None}
    by_wait = sorted(known, key=lambda number: (_communication(known[number]), number))
    chosen = [number for number in suspects if number in known]
    if len(by_wait) >= _FEWEST_TO_CHOOSE:
        chosen.append(by_wait[0])
    if by_wait:
        chosen.insert(min(len(chosen), MOST - 1), by_wait[len(by_wait) // 2])
    return list(dict.fromkeys(chosen))[:MOST]


def _communication(rank: Rank) -> int:
    return rank.time_ns.overlapped_communication + rank.time_ns.exposed_communication
