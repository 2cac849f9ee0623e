"""Devices stand idle for one cause: what all findings of that form share.

Guarantees: pure; operators are named only as far as the trace has them; a place adds nothing where a trace says
nothing of it; of a sample of a trace nothing is said.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.findings.finding import (
    MOST_NAMES,
    UNEVEN,
    FindingRule,
    MeasuredFinding,
    RanksOfKind,
    find_uneven,
)
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.words.code import name_code_place

_SAMPLED_PERMILLE: Final = 500
_LONGEST: Final = 60
MOST_OF_A_PLACE: Final = SentenceGuard(
    place="finding of idle time: its place", figure="ranks.idle_places.time_ns", whole="the rank's idle time of it",
    least_permille=500, words="most of it between … and …", below="N % of it between … and …",
)  # fmt: skip
PART_OF_A_PLACE: Final = SentenceGuard(
    place="finding of idle time: a smaller place", figure="ranks.idle_places.time_ns",
    whole="the rank's idle time of it", least_permille=250, words="N % of it between … and …",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdleDevice(ABC):
    """A place where much of the idle time lies, on the rank with most there, and the operators that show it.

    The place is None where none holds a part worth a word.
    """

    place: IdlePlace | None = None
    place_permille: int = 1000  # of that rank's idle time of this cause
    names: Sequence[str] = ()

    guard: ClassVar[SentenceGuard]

    @classmethod
    def of(
        cls, place: IdlePlace | None, permille: int, names: Sequence[str], view: RanksOfKind, chosen: Sequence[Rank]
    ) -> Self:
        """The facts; `chosen`: the ranks that stand out, or all."""
        del view, chosen
        return cls(place, permille, names)

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        where = "" if self.place is None else _say_place(self.place, self.place_permille)
        return f"{self.say_cause()}{where}", self.advise()

    def say_cause(self) -> str:
        """The cause, without its place."""
        return self.guard.words

    @abstractmethod
    def advise(self) -> str:
        """Things to try."""

    @property
    def line(self) -> str:
        """The line of code; "" where none is known."""
        return "" if self.place is None or self.place.place is None else name_code_place(self.place.place)


def make_idle_rule(
    kind: str,
    facts: type[IdleDevice],
    time_ns: Callable[[IdleCauses], int],
    *,
    names: Callable[[Report], list[str]] = lambda _report: [],
    least_gain: Callable[[RanksOfKind], float] = lambda _view: 0.0,
    guards: tuple[SentenceGuard, ...] = (),
) -> FindingRule:
    """`names`: operators of the report that show it; `least_gain`: what is known of its gain beside the idle time."""

    def find(view: RanksOfKind) -> MeasuredFinding | None:
        total = view.total
        if total.idle_ns is None or total.time_ns.span <= 0 or _is_sampled(view.ranks):
            return None
        permille = max(1000 * time_ns(total.idle_ns) // total.time_ns.span, int(1000 * least_gain(view)))
        if not facts.guard.allows(permille, 1000):
            return None
        uneven = find_uneven(view.ranks, lambda rank: 0 if rank.idle_ns is None else time_ns(rank.idle_ns))
        chosen = [rank for rank in view.ranks if not uneven or rank.rank in uneven]
        place, place_permille = _find_worst_place(kind, chosen, time_ns)
        around = [] if place is None else [place.operator, place.after, place.before]
        shown = list(dict.fromkeys(name for name in [*names(view.report), *around] if name))[:MOST_NAMES]
        return MeasuredFinding(
            kind=kind,
            facts=facts.of(place, place_permille, shown, view, chosen),
            guard=facts.guard,
            gain_permille=permille,
            measure=f"totals.{facts.guard.figure}",
            value_ns=time_ns(total.idle_ns),
            ranks=uneven,
            names=shown,
            place=None if place is None else place.place,
        )

    return FindingRule(kind, (facts.guard, MOST_OF_A_PLACE, PART_OF_A_PLACE, UNEVEN, *guards), find)


def short_name(name: str) -> str:
    """The name of an operator or kernel, cut to what a sentence holds."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _is_sampled(ranks: Sequence[Rank]) -> bool:
    return any(rank.recorded_permille is not None and rank.recorded_permille < _SAMPLED_PERMILLE for rank in ranks)


def _find_worst_place(
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


def _say_place(place: IdlePlace, permille: int) -> str:
    """`, most of it between aten::item and aten::add_, before relu on stream 7`; less than half with its share."""
    between = ""
    if place.after or place.before:
        between = f" between {short_name(place.after) or 'the start'} and {short_name(place.before) or 'the end'}"
    ends = [f"after {short_name(place.after_work)} on stream {place.after_stream}"] if place.after_work else []
    ends += [f"before {short_name(place.before_work)} on stream {place.before_stream}"] if place.before_work else []
    if not between and not ends:
        return ""
    part = "most of it" if MOST_OF_A_PLACE.allows(permille, 1000) else f"{permille // 10} % of it"
    return f", {part}{between}{',' if between and ends else ''}{' ' if ends else ''}{' and '.join(ends)}"
