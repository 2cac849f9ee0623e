"""Which ranks can be compared, and what is said of all that the traces leave untold.

Guarantees: pure; one bad trace spoils no verdict, and none is left out without a word.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.causes.loaders import can_compare_loaders
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.reasons import name_ranks
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS, RankOperations

_LEAST_OF_TYPICAL: Final = 0.5


def choose_comparable(operations: Sequence[RankOperations]) -> tuple[list[RankOperations], list[str]]:
    """(the ranks that can be compared, what must be said about the others): one bad trace spoils no verdict."""
    count = Counter(one.rank for one in operations)
    distinct = [one for one in operations if one.rank is not None and count[one.rank] == 1]
    said = []
    if len(distinct) < len(operations):
        left = len(operations) - len(distinct)
        said.append(f"{left} traces were left out: they do not say which rank they are, or claim the same one")
    typical = median(len(one.iterations) for one in distinct) if distinct else 0
    ranks = [one for one in distinct if len(one.iterations) >= max(_LEAST_OF_TYPICAL * typical, 1)]
    short = [one.rank for one in distinct if one not in ranks and one.rank is not None]
    if short and typical:
        said.append(f"{_capital(name_ranks(short))} {_was(short)} left out: too few of the iterations are in the trace")
        return ranks, said
    return distinct, said


def say_untold(
    table: OwnTime, matched: Matched, left_out: Sequence[str], missing: Sequence[int], *, links_judged: bool
) -> list[str]:
    """What no verdict over these ranks can tell, a sentence each. `missing`: ranks without a trace."""
    said = list(left_out)
    if missing:
        said.append(
            f"{_capital(name_ranks(missing))} left no trace: lateness that comes from there shows as a slow group, or "
            "not at all"
        )
    if matched.unmatched:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(matched.unmatched_kinds.items()))
        said.append(
            f"For {matched.unmatched:,} of {matched.operations:,} operations ({kinds}) the traces do not say "
            "who took part"
        )
    if not links_judged:
        said.append(
            "A slow link would not show: every process group is the only one of its kind, so there is nothing to "
            "compare its transfers with"
        )
    if any(one.cut for one in matched.ranks):
        said.append(f"Only the first {MOST_OPERATIONS:,} collectives of a rank were compared")
    return said + _say_unmeasured(table, matched)


def _say_unmeasured(table: OwnTime, matched: Matched) -> list[str]:
    said = []
    alone = [one.rank for number, one in enumerate(matched.ranks) if len(table.peers(number)) == 0]
    if alone:
        what = "a slow host" if can_compare_loaders(table) else "a slow host or data loader"
        said.append(
            f"{_capital(what)} on {name_ranks([rank for rank in alone if rank is not None])} would not show: "
            "no other rank does the same work"
        )
    if all(one.kind == "gpu" for one in matched.ranks) and not np.isfinite(table.clock_megahertz).any():
        said.append("A GPU whose clock is throttled all the time would show as a slow GPU: clocks were not sampled")
    return said


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _was(ranks: Sequence[int]) -> str:
    return "was" if len(ranks) == 1 else "were"
