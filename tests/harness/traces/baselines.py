"""Two simple rules for who is late, as other tools have them, to stand beside the straggler analysis.

Both need clocks; they are given clocks aligned by the ends of matched operations, which is more than they have in the
field.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.rank.communication.operations import RankOperations


@dataclass(frozen=True)
class Simple:
    """The rank that waited least in all its collectives, and the one that came last to most; both name a rank."""

    waits_least: int
    last_most_often: int


def both(operations: Sequence[RankOperations]) -> Simple:
    """The answers of the two rules."""
    matched = match(operations)
    offsets = align_clocks(matched).offset_ns
    arrivals: dict[int, list[tuple[int, int]]] = {}
    for number, one in enumerate(matched.ranks):
        starts = one.columns.start_ns + offsets[number]
        for position in np.flatnonzero(matched.collective[number] >= 0):
            arrivals.setdefault(int(matched.collective[number][position]), []).append((int(starts[position]), number))
    waited = np.zeros(len(matched.ranks))
    last: Counter[int] = Counter()
    for members in arrivals.values():
        latest = max(members)
        last[latest[1]] += 1
        for start, number in members:
            waited[number] += latest[0] - start
    ranks = [one.rank if one.rank is not None else -1 for one in matched.ranks]
    return Simple(ranks[int(waited.argmin())], ranks[last.most_common(1)[0][0]])
