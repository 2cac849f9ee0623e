"""Makes ranks whose traces mark no iterations agree on how many they recorded.

Each rank's iterations are the shortest pattern in which its own operations repeat, and chance makes it longer on some
ranks where shapes change. The number that most ranks have is taken for those that do the same in a part or a multiple
of it. Guarantees: pure; a rank whose operations do not repeat like another's keeps its iterations.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fleetprof_analyzer.rank.communication.operations import RankOperations


def agree_on_periods(ranks: Sequence[RankOperations]) -> list[RankOperations]:
    """The ranks in their order, some with other iterations."""
    counts = Counter(len(one.iterations) for one in ranks if len(one.iterations) > 1)
    if len(counts) < 2 or any(one.indices_proven for one in ranks):
        return list(ranks)
    most = max(counts, key=lambda count: (counts[count], count))
    programs = {program for one in ranks if len(one.iterations) == most for program in [_program(one, most)] if program}
    return [_recut(one, most, programs) for one in ranks]


def _recut(one: RankOperations, count: int, programs: set[bytes]) -> RankOperations:
    if len(one.iterations) == count or _program(one, count) not in programs:
        return one
    iteration = one.columns.iteration
    numbers = np.where(iteration >= 0, np.arange(len(one)) // (len(one) // count), -1).astype(np.int32)
    return replace(one, iterations=list(range(count)), columns=replace(one.columns, iteration=numbers))


def _program(one: RankOperations, count: int) -> bytes | None:
    """The kinds of an iteration, if all operations are so many times the same; None else."""
    kinds, total = one.columns.kind, len(one)
    if total == 0 or total % count or (one.columns.iteration < 0).any():
        return None
    rows = kinds.reshape(count, total // count)
    return rows[0].tobytes() if bool((rows == rows[0]).all()) else None
