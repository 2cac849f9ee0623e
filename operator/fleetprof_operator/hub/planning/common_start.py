"""Tells whether the ranks of a capture began with one step, as its report found it in the traces.

An order names one step for all; a rank whose training made steps faster than it was foretold takes it up too late, and
Kineto begins later without a word.

Guarantees: pure; what the report cannot tell is no difference.
"""

from typing import Final

from fleetprof_api.report.start_skew import StartSkew

_GROUPS_SHOWN: Final = 5
_RANKS_SHOWN: Final = 10


def say_different_steps(start: StartSkew) -> str:
    """The first step of each rank, as a sentence; empty when all began with one, or nothing tells."""
    if start.same_first_iteration is not False:
        return ""
    groups: dict[int, list[int]] = {}
    for rank in start.ranks:
        if rank.first_step is not None and rank.rank is not None:
            groups.setdefault(rank.first_step, []).append(rank.rank)
    shown = [f"{step} ({_name(ranks)})" for step, ranks in sorted(groups.items())[:_GROUPS_SHOWN]]
    more = [f"{len(groups) - _GROUPS_SHOWN} more"] if len(groups) > _GROUPS_SHOWN else []
    which = f": {', '.join(shown + more)}" if shown else ""
    return f"not the same iterations, because the ranks began with different steps{which}"


def _name(ranks: list[int]) -> str:
    text = ", ".join(map(str, sorted(ranks)[:_RANKS_SHOWN]))
    return ("rank " if len(ranks) == 1 else "ranks ") + text + (" and more" if len(ranks) > _RANKS_SHOWN else "")
