"""Where idle time of one cause lies: the place with the most of it, and the operators around it.

Guarantees: pure; operators are named only as far as the trace has them.
"""

from collections.abc import Sequence

from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import IdlePlace


def find_worst_place(kind: str, ranks: Sequence[Rank]) -> IdlePlace | None:
    """Of all ranks the place with the most idle time of this kind."""
    places = [place for rank in ranks for place in rank.idle_places if place.kind == kind]
    return max(places, key=lambda place: place.time_ns, default=None)


def operators_of(place: IdlePlace) -> list[str]:
    """The operators around it, each once."""
    return list(dict.fromkeys(name for name in (place.operator, place.after, place.before) if name))
