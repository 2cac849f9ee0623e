"""Iterations that stand apart from the others of their rank: a loop evaluates or writes a checkpoint in them.

Rule: docs/measures.md#long-iterations. Guarantees: pure; a rank whose iterations differ only by noise has none, nor has
one with few iterations or one whose first iteration alone is long, as it is where a recording begins.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

import numpy as np
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report_tables import LongIterations, StageName

from fleetprof_analyzer.rank.measures.stages.loss import Span

_FEWEST: Final = 8
_MOST_SHARE: Final = 0.25
_USUAL: Final = 3.0  # times the median of all
_APART: Final = 2.0  # times the longest of the others
_MOST_OF_IT: Final = 0.5


def find_long(lengths_ns: Sequence[int]) -> list[int]:
    """The positions of the iterations that stand apart; as many as do."""
    if len(lengths_ns) < _FEWEST:
        return []
    order = np.argsort(np.array(lengths_ns), kind="stable")
    ordered = np.array(lengths_ns)[order]
    least = _USUAL * float(np.median(ordered))
    for count in range(int(_MOST_SHARE * len(ordered)), 0, -1):
        shortest, longest_other = ordered[-count], ordered[-count - 1]
        if shortest >= least and shortest >= _APART * longest_other:
            found = sorted(order[-count:].tolist())
            return [] if found == [0] else found
    return []


def measure_long_iterations(
    bounds: Sequence[Span],
    stage_ns: Sequence[Mapping[StageName, int]],
    find_code: Callable[[Sequence[Span]], PlaceInCode | None],
) -> LongIterations | None:
    """One rank's long iterations. `bounds`, `stage_ns` are of its iterations; `find_code` says where the thread was."""
    lengths = [end - start for start, end in bounds]
    positions = find_long(lengths)
    if not positions:
        return None
    others = [position for position in range(len(bounds)) if position not in set(positions)]
    longer = Counter[StageName]()
    for stage in {name for times in stage_ns for name in times}:
        usual = median([stage_ns[position].get(stage, 0) for position in others])
        longer[stage] = round(sum(stage_ns[position].get(stage, 0) - usual for position in positions))
    usual_ns = round(median([lengths[position] for position in others]))
    whole = sum(lengths[position] - usual_ns for position in positions)
    (stage, time_ns), *_ = longer.most_common(1)
    return LongIterations(
        positions=positions,
        usual_ns=usual_ns,
        stage=stage if time_ns >= _MOST_OF_IT * whole else None,
        place=find_code([bounds[position] for position in positions]),
    )
