"""Reasons of verdicts, as a colleague would say them: parts of sentences, in lower case, without a full stop.

Guarantees: pure; subject, verb, object; no more than the verdict proves.
"""

from typing import Final

from fleetprof_api.report.stragglers import Cause, Undecided

from fleetprof_analyzer.job.stragglers.judgement.reasons import (
    AnalyzerFault,
    Disputed,
    HeavyStage,
    LateRanks,
    Moving,
    Nobody,
    NotComparable,
    NotStored,
    Obstacle,
    Reason,
    SlowLinks,
    TooFewIterations,
    TooNoisy,
    Unfaithful,
    Unseen,
    Unsure,
    UnsureTurns,
)
from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.words.ranks import name_ranks
from fleetprof_analyzer.words.untold import say_untold

MOST_ITERATIONS: Final = 100
"""That one capture can be asked for."""
_MOST_OF_FAULT: Final = 300
_MOVING: Final[dict[Cause, str]] = {
    "unequal_work": "the work differs from iteration to iteration and from rank to rank; no rank is late by itself",
    "data_loading": "each iteration waits for another rank's batch; no rank is late by itself",
    "garbage_collection": "the ranks collect garbage now and then, each at another time",
    "host": "the hosts of all ranks pause now and then, each at another time",
}
_OF_STAGE: Final[dict[Cause, str]] = {
    "data_loading": "in the data loader",
    "host": "in host code, while its device waits",
}
_OBSTACLES: Final = {
    Obstacle.MEMORY: "there is not enough memory to compare the ranks' operations",
    Obstacle.SAMPLED: "the traces hold a sample of the operations only: own times are not known",
    Obstacle.SEVERAL_GROUPS: "the traces do not say which process group an operation belongs to, and the ranks are in "
    "several",
    Obstacle.CIRCLE: "the matched operations wait for each other in a circle; the order of launches is lost",
}


def say_reason(reason: Reason) -> str:
    """One reason in words."""
    match reason:
        case LateRanks():
            first, *rest = reason.ranks
            return say_late(f"rank {first}{f', and then for {name_ranks(rest)}' if rest else ''}", reason)
        case SlowLinks():
            return _say_slow_links(reason)
        case HeavyStage(ranks, excess, cause):
            stage, more = f"the pipeline stage of {name_ranks(ranks)}", f"{100 * excess:.0f} %"
            if cause in _OF_STAGE:
                return f"{stage} takes {more} longer than the other stages, most of it {_OF_STAGE[cause]}"
            return f"{stage} has {more} more to do than the other stages"
        case Moving(cause):
            return _MOVING[cause]
        case Unsure(candidate):
            return _say_unsure(candidate)
        case Disputed(rank, gain, has_operators):
            option = "Python's calls (Stacks)" if has_operators else "the host's operators (ProfilerActivity.CPU)"
            return (
                f"the potential saving of rank {rank} may be {_percent(gain)} of each iteration: its device has gaps, "
                f"and the trace does not say whether its host worked or waited in them; a recording of {option} "
                "would tell"
            )
        case Unfaithful(fidelity):
            longer = "longer" if fidelity > 1 else "shorter"
            off = _percent(abs(fidelity - 1))
            return (
                f"the window replayed from the traces is {off} {longer} than it was, and nothing found explains as much"
            )
        case UnsureTurns(needed):
            return f"the ranks may pause in turns; {say_iterations(needed)}"
        case TooNoisy(iterations):
            return f"these {iterations} iterations are too few or too noisy"
        case TooFewIterations(iterations, needed):
            are = "iteration is" if iterations == 1 else "iterations are"
            return f"{iterations or 'no'} {are} in all of the traces, and a verdict takes {needed}: capture more"
        case Nobody(missing, alone, floor):
            left = f", as far as the captured ranks tell: {name_ranks(missing)} left no trace" if missing else ""
            if alone:
                none = "no two call the same collectives in the same order, so that a late host may not show"
                return f"no rank stands out, but {none}{left}"
            if floor is None:
                return f"no rank stands out; how late one would have to be to show is not known{left}"
            return f"no rank is late by more than {_percent(floor)} of an iteration{left}"
        case Unseen(missing, None, share):
            return (
                f"the ranks wait for {_percent(share)} of an iteration longer than the captured ones explain, and "
                f"{name_ranks(missing)} left no trace"
            )
        case Unseen(missing, rank, share):
            return (
                f"rank {rank} takes {_percent(share)} longer than its peers, and what that costs is not known without "
                f"{name_ranks(missing)}, which left no trace"
            )
        case NotStored(ranks):
            return f"the operations of {ranks} ranks were not stored with their summaries"
        case NotComparable(left_out):
            return "; ".join(map(say_untold, left_out))
        case Mismatch():
            return f"the operations of the ranks cannot be matched: {say_mismatch(reason)}"
        case Obstacle():
            return _OBSTACLES[reason]
        case AnalyzerFault(kind, message):
            return f"a fault of the analyzer: {kind}: {message}"[:_MOST_OF_FAULT]


def say_late(who: str, late: LateRanks) -> str:
    """The ranks that the others wait for; of two that do the same work it can only be said which is the slower."""
    doubt = "; only one other rank does the same work, so this is the slower of two" if late.peers == 1 else ""
    return f"the others wait for {who}{doubt}"


def _say_slow_links(links: SlowLinks) -> str:
    """The slow transfers, and the rank in which they meet."""
    if links.meeting:
        meeting = name_ranks(links.meeting)
        return f"transfers of {links.groups} groups are slow, and all of these groups contain {meeting}"
    return (
        f"transfers between {name_ranks(links.slowest)} take {links.factor:.1f} times as long as in groups like "
        "theirs; the traces do not say which rank's link it is"
    )


def _say_unsure(one: Undecided) -> str:
    """The ranks that may be late, the interval of each, and what would decide it."""
    return f"the potential saving of rank {one.rank} is {say_cost(one)}; {say_iterations(one.iterations_needed)}"


def say_cost(one: Undecided) -> str:
    """The cost that a rank may have, with the interval; an interval wider than an iteration says no more than that."""
    if one.gain_low <= 0 and one.gain_high >= 1:
        return "anything from nothing to all of each iteration"
    return f"{_percent(one.gain)} [{_percent(one.gain_low)}, {_percent(one.gain_high)}] of each iteration"


def say_iterations(needed: int) -> str:
    """The capture that would decide it: a capture of so many iterations, where one can be that long."""
    if needed > MOST_ITERATIONS:
        return f"more than the {MOST_ITERATIONS} iterations of the longest capture would be needed to decide"
    return f"about {round_iterations(needed)} iterations would decide"


def round_iterations(needed: int) -> int:
    """Up to the next five, where there are twenty or more."""
    return needed if needed < 20 else -(-needed // 5) * 5


def say_mismatch(found: Mismatch) -> str:
    """The reason why operations of different ranks cannot be matched."""
    match found.kind:
        case "no_common_iteration":
            return "the ranks have no iteration in common"
        case "groups_not_known":
            return "the traces do not say which process group an operation belongs to"
        case "few_partners":
            return f"only {found.matched_percent:.0f} % of the operations have their partners on the other ranks"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
