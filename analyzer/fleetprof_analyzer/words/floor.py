"""The lateness that a rank would need to show, and what would lower it: a verdict that names nobody is worth no more.

Guarantees: pure; what would lower it is said only where the report's numbers carry it.
"""

from typing import Final

from fleetprof_api.quantities import percent
from fleetprof_api.report.report import Report
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.words.text import capital
from fleetprof_analyzer.words.verdict_reasons import MOST_ITERATIONS, round_iterations

_LOW: Final = 0.05
"""A floor that `low_floor_iterations` is about, and that needs no word on how to lower it."""
_LEAST_LOWERED: Final = 0.9
_LEAST_WAIT: Final = 0.02
"""Of the time that was sampled."""


def say_nobody(found: Stragglers, who: str = "no rank") -> str:
    """That none of these is late, with its floor and without a full stop."""
    if found.smallest_gain is None:
        return f"{who} stands out"
    return f"{who} is late by more than {percent(100 * found.smallest_gain)} of an iteration"


def say_floor(found: Stragglers) -> str:
    """The floor as a sentence of its own; "" where it is not known."""
    if found.smallest_gain is None:
        return ""
    if found.smallest_gain >= 1:
        return f"{len(found.iterations)} such iterations would not show a late rank, however late"
    least = percent(100 * found.smallest_gain)
    such = f"a rank with a potential saving below {least} of an iteration"
    return f"{such} may not show in {len(found.iterations)} iterations"


def say_lower(found: Stragglers, report: Report) -> str:
    """`. About 40 iterations would lower that to 5 %`: what lowers a high floor; "" where it is low or not known."""
    floor = found.smallest_gain
    if floor is None or floor <= _LOW:
        return ""
    return "".join(f". {capital(part)}" for part in (_by_iterations(found, floor), _by_cores(report)) if part)


def _by_iterations(found: Stragglers, floor: float) -> str:
    needed, lasting = found.low_floor_iterations, found.lasting_gain
    if needed is not None and len(found.iterations) < needed <= MOST_ITERATIONS:
        return f"about {round_iterations(needed)} iterations would lower that to 5 %"
    if lasting is not None and lasting > _LOW:
        if lasting < _LEAST_LOWERED * floor:
            return f"more iterations would lower that to {percent(100 * lasting)} at best: the ranks themselves differ"
        return "more iterations would hardly lower that: the ranks themselves differ"
    if lasting is not None:
        return f"even {MOST_ITERATIONS} iterations would not lower that to 5 %, for they differ too much"
    return ""


def _by_cores(report: Report) -> str:
    """The advice where the training threads wait for cores, which is what iterations differ by then."""
    uses = [rank.cores for rank in report.ranks if rank.cores is not None and rank.cores.waited_ns is not None]
    sampled_ns, waited_ns = sum(one.sampled_ns for one in uses), sum(one.waited_ns or 0 for one in uses)
    if waited_ns < _LEAST_WAIT * sampled_ns or not waited_ns:
        return ""
    return (
        "fewer programs and threads beside the job would lower that: the training threads wait for a core "
        f"{percent(100 * waited_ns / sampled_ns)} of the time"
    )
