"""Limits of any verdict over the ranks at hand, a sentence each, without a full stop.

Guarantees: pure; says no more than the facts hold.
"""

from collections.abc import Sequence

from fleetprof_analyzer.job.stragglers.judgement.untold import (
    Alone,
    NotCaptured,
    OperationsCut,
    OperationsLost,
    PartnersNotKnown,
    TooShort,
    Unmeasured,
    Untold,
    WithoutRank,
)
from fleetprof_analyzer.words.ranks import name_ranks


def say_untold(untold: Untold) -> str:
    """One limit in words."""
    match untold:
        case WithoutRank(traces):
            return f"{traces} traces were left out: they do not say which rank they are, or claim the same one"
        case TooShort(ranks):
            return f"{_named(ranks)} {_was(ranks)} left out: too few of the iterations are in the trace"
        case NotCaptured(ranks):
            return f"{_named(ranks)} left no trace: a late rank among them shows as a slow group, or not at all"
        case PartnersNotKnown(unmatched, operations, by_kind):
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(by_kind.items()))
            return f"For {unmatched:,} of {operations:,} operations ({kinds}) the traces do not say who took part"
        case OperationsCut(most):
            return f"Only the first {most:,} collectives of a rank were compared"
        case Alone(ranks, loaders_compared):
            what = "A slow host" if loaders_compared else "A slow host or data loader"
            none = "no other rank calls the same collectives in the same order"
            return f"{what} on {name_ranks(ranks)} would not show: {none}"
        case OperationsLost(ranks):
            return f"The operations of {name_ranks(ranks)} were not stored"
        case Unmeasured.LINKS:
            return (
                "A slow link would not show: every process group is the only one of its kind, so there is nothing to "
                "compare its transfers with"
            )
        case Unmeasured.CLOCKS:
            return "A GPU whose clock is throttled all the time would show as a slow GPU: clocks were not sampled"


def _named(ranks: Sequence[int]) -> str:
    names = name_ranks(ranks)
    return names[:1].upper() + names[1:]


def _was(ranks: Sequence[int]) -> str:
    return "was" if len(ranks) == 1 else "were"
