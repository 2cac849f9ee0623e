"""Which ranks can be compared, and what the traces leave untold.

Guarantees: pure; one bad trace spoils no verdict, and none is left out untold.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import median

import numpy as np

from fleetprof_analyzer.job.stragglers.causes.loaders import can_compare_loaders
from fleetprof_analyzer.job.stragglers.judgement.untold import (
    Alone,
    NotCaptured,
    OperationsCut,
    PartnersNotKnown,
    TooShort,
    Unmeasured,
    Untold,
    WithoutRank,
)
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.job.stragglers.thresholds import HALF
from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS, RankOperations


def choose_comparable(operations: Sequence[RankOperations]) -> tuple[list[RankOperations], list[Untold]]:
    """(the ranks that can be compared, which others were left out): one bad trace spoils no verdict."""
    count = Counter(one.rank for one in operations)
    distinct = [one for one in operations if one.rank is not None and count[one.rank] == 1]
    left_out: list[Untold] = []
    if len(distinct) < len(operations):
        left_out.append(WithoutRank(len(operations) - len(distinct)))
    typical = median(len(one.iterations) for one in distinct) if distinct else 0
    ranks = [one for one in distinct if len(one.iterations) >= max(HALF * typical, 1)]
    short = [one.rank for one in distinct if one not in ranks and one.rank is not None]
    if short and typical:
        left_out.append(TooShort(short))
        return ranks, left_out
    return distinct, left_out


def find_untold(
    table: OwnTime, matched: Matched, left_out: Sequence[Untold], missing: Sequence[int], *, links_judged: bool
) -> list[Untold]:
    """Limits of any verdict over these ranks. `missing`: ranks without a trace."""
    found = list(left_out)
    if missing:
        found.append(NotCaptured(list(missing)))
    if matched.unmatched:
        found.append(PartnersNotKnown(matched.unmatched, matched.operations, matched.unmatched_kinds))
    if not links_judged:
        found.append(Unmeasured.LINKS)
    if any(one.cut for one in matched.ranks):
        found.append(OperationsCut(MOST_OPERATIONS))
    alone = [one.rank for number, one in enumerate(matched.ranks) if len(table.peers(number)) == 0]
    if alone:
        found.append(Alone([rank for rank in alone if rank is not None], can_compare_loaders(table)))
    if all(one.kind == "gpu" for one in matched.ranks) and not np.isfinite(table.clock_megahertz).any():
        found.append(Unmeasured.CLOCKS)
    return found
