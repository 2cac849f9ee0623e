"""The place of the window on each rank's own clock, and what is added to its times.

Guarantees: pure; ranks whose clocks are tied share one window; another's window is that of its own iterations, or
begins where its recording does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetprof_api.report.report import Rank

from fleetprof_analyzer.timeline.events.clocks import Clocks
from fleetprof_analyzer.timeline.events.marks import Span
from fleetprof_analyzer.timeline.window import CutWindow, bounds_of

EVERYTHING: Final[Span] = (-(1 << 61), 1 << 61)
_HOUR_NS: Final = 3600 * 10**9
_PROVEN: Final = ("agent", "profiler_step")


@dataclass(frozen=True, slots=True)
class RankShare:
    """One rank's share: the window on its own clock, and what is added to its times to be on the common one."""

    entry: Rank
    span: Span
    offset_ns: int
    apart: str = ""  # why its clock is not tied to the others'

    @property
    def common(self) -> Span:
        """The window on the common clock."""
        return self.span[0] + self.offset_ns, self.span[1] + self.offset_ns


def place_ranks(
    window: CutWindow,
    iterations: tuple[int, int] | None,
    entries: Sequence[Rank],
    clocks: Clocks,
    modules: Mapping[str, Span],
) -> list[RankShare]:
    """One for each entry that holds something of the window, in their order; `modules`: the window's, by source."""
    spans = {
        entry.source: modules.get(entry.source) if window.kind == "module" else _own_span(window, iterations, entry)
        for entry in entries
    }
    common = _common_span(window, entries, spans, clocks)
    placed = []
    for entry in entries:
        offset, span = clocks.offset_ns.get(entry.source), spans[entry.source]
        if offset is not None and common is not None:
            span = common[0] - offset, common[1] - offset
        if span is not None:
            placed.append(RankShare(entry, span, offset or 0, clocks.apart.get(entry.source, "")))
    return _bring_together(placed)


def extend(places: Sequence[RankShare], end_ns: Mapping[str, int]) -> list[RankShare]:
    """Lets the windows reach as far as `end_ns` (by source, own clocks); of tied ranks all as far as the farthest."""
    tied = [place.offset_ns + end_ns[place.entry.source] for place in places if not place.apart]
    farthest = max(tied, default=0)
    longer = []
    for place in places:
        end = end_ns[place.entry.source] if place.apart else farthest - place.offset_ns
        longer.append(replace(place, span=(place.span[0], max(place.span[1], end))))
    return longer


def choose_origin(first_ns: Sequence[int]) -> int:
    """A round time before all others: Perfetto takes no time below zero, and what is kept may begin long before."""
    return (min(first_ns) - _HOUR_NS) // _HOUR_NS * _HOUR_NS


def _own_span(window: CutWindow, iterations: tuple[int, int] | None, entry: Rank) -> Span | None:
    if iterations is not None:
        return bounds_of(entry, iterations)
    if window.kind == "time":
        return entry.start_ns + window.first, entry.start_ns + window.last
    return EVERYTHING


def _common_span(
    window: CutWindow, entries: Sequence[Rank], spans: Mapping[str, Span | None], clocks: Clocks
) -> Span | None:
    """The window of the ranks whose clocks are tied, on the common clock."""
    tied = [entry for entry in entries if entry.source in clocks.offset_ns and spans[entry.source] is not None]
    if window.kind == "all" or not tied:
        return None
    # Numbers that count from each trace's beginning may mean another iteration on another rank.
    same = [entry for entry in tied if entry.index_from in _PROVEN] or tied[:1]
    if window.kind == "time":
        same = [min(tied, key=lambda entry: entry.start_ns + clocks.offset_ns[entry.source])]
    shifted = [(spans[entry.source] or EVERYTHING, clocks.offset_ns[entry.source]) for entry in same]
    return min(span[0] + offset for span, offset in shifted), max(span[1] + offset for span, offset in shifted)


def _bring_together(places: list[RankShare]) -> list[RankShare]:
    """A clock that is neither tied nor Unix time shows nothing: such windows begin where the first one does."""
    lost = [place for place in places if place.apart and place.entry.time_origin == "trace"]
    known = [place for place in places if place not in lost] or lost[:1]
    if not known:
        return places
    begin = min(_begin(place) + place.offset_ns for place in known)
    return [
        replace(place, offset_ns=begin - _begin(place), apart=f"{place.apart}; put where the first window begins")
        if place in lost and place not in known
        else place
        for place in places
    ]


def _begin(place: RankShare) -> int:
    return place.entry.start_ns if place.span == EVERYTHING else place.span[0]
