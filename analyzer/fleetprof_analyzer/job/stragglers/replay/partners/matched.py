"""Which operations of different ranks are one and the same collective, as matching.py found it.

Guarantees: frozen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.trace.trace import Bools, Int64s

ONE_GROUP: Final = "order, all ranks as one group"


@dataclass(frozen=True, slots=True)
class Matched:
    """M collectives over R ranks.

    `iteration[r]` and `collective[r]` have one value per operation of rank r, -1: none.
    """

    ranks: list[RankOperations]
    iterations: list[int]  # those that every rank has, as the first rank numbers them
    iteration: list[Int64s]
    collective: list[Int64s]
    count: int
    whole: Bools  # shape (M,): all members of the group were captured
    method: str = ""
    operations: int = 0  # of the common iterations, on all ranks
    unmatched: int = 0
    unmatched_kinds: dict[str, int] = field(default_factory=dict)  # `unmatched` by kind
    missing: list[int] = field(default_factory=list)  # ranks that belong to groups and were not captured
    alone: dict[str, int] = field(default_factory=dict)  # of `unmatched_kinds`, those whose partners are all missing
    hosts: Sequence[str] = ()  # of each rank, as far as they are known
    mismatch: Mismatch | None = None  # why there is no match; None where there is one
    # The same with those who stand in for missing ranks, behind the others; None without any. In it `like`, shape (R,),
    # says as which of the ranks each works.
    played: "Matched | None" = None
    like: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def guessed(self) -> bool:
        """Tells whether all ranks were taken to be one group because nothing says the groups."""
        return self.method == ONE_GROUP
