"""Where idle time of one cause lies: the place with the most of it, and the operators around it.

Guarantees: pure; operators are named only as far as the trace has them.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Literal

from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.job.findings.guards import PART_OF_A_PLACE, ZERO_GRAD

_ZEROES: Final = re.compile(r"^aten::(?:_foreach_)?zero_$")


def find_worst_place(
    kind: str, ranks: Sequence[Rank], time_ns: Callable[[IdleCauses], int]
) -> tuple[IdlePlace | None, int]:
    """(of all ranks the place with the most idle time of this kind, its permille of that of the rank); (None, 0)."""
    places = [(place, rank) for rank in ranks for place in rank.idle_places if place.kind == kind]
    if not places:
        return None, 0
    place, rank = max(places, key=lambda one: one[0].time_ns)
    whole_ns = 0 if rank.idle_ns is None else time_ns(rank.idle_ns)
    permille = min(1000 * place.time_ns // whole_ns, 1000) if whole_ns else 0
    return (place, permille) if PART_OF_A_PLACE.allows(permille, 1000) else (None, 0)


def find_zero_grad(place: IdlePlace | None, ranks: Sequence[Rank]) -> Literal["", "zeroes", "drops"]:
    """Whether idle time in the optimizer's host code is that of zero_grad, and not of step."""
    if place is not None and _ZEROES.search(place.operator):
        return "zeroes"
    times = Counter[str]()
    for stage in (stage for rank in ranks if rank.stages is not None for stage in rank.stages.stages):
        times[stage.stage] += stage.time_ns
    return "drops" if ZERO_GRAD.allows(times["zero_grad"], max(times["optimizer"], 1)) else ""


def operators_of(place: IdlePlace) -> list[str]:
    """The operators around it, each once."""
    return list(dict.fromkeys(name for name in (place.operator, place.after, place.before) if name))
