"""Where idle time lies, as the end of a finding's sentence: the operators, the streams, the work at both ends.

Guarantees: pure; "" where a trace says nothing of it; operators are named only as far as the trace has them.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import IdlePlace

_LONGEST: Final = 60


def find_worst_place(kind: str, ranks: Sequence[Rank]) -> IdlePlace | None:
    """Of all ranks the place with the most idle time of this kind."""
    places = [place for rank in ranks for place in rank.idle_places if place.kind == kind]
    return max(places, key=lambda place: place.time_ns, default=None)


def say_idle_place(place: IdlePlace) -> str:
    """`, most of it between aten::item and aten::add_, before relu on stream 7`."""
    between = ""
    if place.after or place.before:
        between = f" between {_short(place.after) or 'the start'} and {_short(place.before) or 'the end'}"
    ends = [f"after {_short(place.after_work)} on stream {place.after_stream}"] if place.after_work else []
    ends += [f"before {_short(place.before_work)} on stream {place.before_stream}"] if place.before_work else []
    if not between and not ends:
        return ""
    return f", most of it{between}{',' if between and ends else ''}{' ' if ends else ''}{' and '.join(ends)}"


def operators_of(place: IdlePlace) -> list[str]:
    """The operators around it, each once."""
    return list(dict.fromkeys(name for name in (place.operator, place.after, place.before) if name))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
