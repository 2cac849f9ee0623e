"""Reasons of verdicts, as a colleague would say them: parts of sentences, in lower case, without a full stop.

Guarantees: pure; subject, verb, object; no more than the verdict proves.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.stragglers import Straggler, Undecided

from fleetprof_analyzer.job.stragglers.network import Links

MOST_ITERATIONS: Final = 100
"""That one capture can be asked for."""
NOBODY: Final = "no rank holds the others up"
_MOST_NAMED: Final = 8


def say_straggler(named: Sequence[Straggler]) -> str:
    """Whom the others wait for; of two that do the same work it can only be said which is the slower."""
    first = named[0]
    more = f", and then for {name_ranks([one.rank for one in named[1:]])}" if len(named) > 1 else ""
    doubt = ""
    if first.peers == 1:
        doubt = "; only one other rank does the same work, so this is the slower of two"
    return f"the others wait for rank {first.rank}{more}{doubt}"


def say_slow_link(links: Links, slowest: Sequence[int], meeting: Sequence[int]) -> str:
    """Which transfers are slow, and in which rank they meet."""
    if meeting:
        return f"transfers of {len(links.slow)} groups are slow, and all of these groups contain {name_ranks(meeting)}"
    return (
        f"transfers between {name_ranks(slowest)} take {links.slow[0].factor:.1f} times as long as in groups like "
        "theirs; the traces do not say which rank's link it is"
    )


def say_heavy_stage(ranks: Sequence[int], excess: float) -> str:
    """Which pipeline stage has too much to do."""
    return f"the pipeline stage of {name_ranks(ranks)} has {100 * excess:.0f} % more to do than the other stages"


def say_undecided(one: Undecided) -> str:
    """Who may be late, within which interval, and what would decide it."""
    within = f"{_percent(one.gain)} [{_percent(one.gain_low)}, {_percent(one.gain_high)}]"
    return f"rank {one.rank} may cost {within} of each iteration; {say_iterations(one.iterations_needed)}"


def say_too_few(iterations: int, needed: int) -> str:
    """There is nothing to compare yet."""
    are = "iteration is" if iterations == 1 else "iterations are"
    return f"{iterations or 'no'} {are} in all of the traces, and a verdict takes {needed}"


def say_iterations(needed: int) -> str:
    """What would decide it: a capture of so many iterations, where one can be that long."""
    if needed > MOST_ITERATIONS:
        return f"more than the {MOST_ITERATIONS} iterations of the longest capture would be needed to decide"
    rounded = needed if needed < 20 else -(-needed // 5) * 5
    return f"about {rounded} iterations would decide"


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 3 and 5`, `ranks 0, 1, 2 and 5 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) <= _MOST_NAMED:
        return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
    return f"ranks {some(ranks)}"


def some(ranks: Sequence[int]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(map(str, ranks[:_MOST_NAMED]))
    return f"{shown} and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else shown


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
