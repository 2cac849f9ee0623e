"""A finding before its sentences, what it is made of, and the rule that makes it.

Guarantees: frozen; sentences are made of a finding's facts alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import KindTotal, Rank, Report

from fleetprof_analyzer.job.sentence_guard import SentenceGuard

OF_VERDICT: Final = "stragglers"
"""The measure of the straggler verdict's finding, by which a headline knows it."""
MOST_NAMES: Final = 5
MOST_RANKS: Final = 8
_FEWEST_UNEVEN: Final = 3
_LEAST_UNEVEN: Final = 0.0005  # of its time: what the median rank has at least, for another to stand out
UNEVEN: Final = SentenceGuard(
    place="finding: its ranks", figure="the rank's share", whole="the median rank's share", least_permille=2000,
    words="most on rank N", more=True,
)  # fmt: skip


class FindingFacts(Protocol):
    """The facts that a finding's sentences are made of."""

    def say(self) -> tuple[str, str]:
        """(what it is, what to try)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFinding:
    """One thing that costs the job time; fields as those of the report's finding. `guard` is what justifies it."""

    kind: str
    facts: FindingFacts
    guard: SentenceGuard
    gain_permille: int
    measure: str
    value_ns: int | None = None
    ranks: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    place: PlaceInCode | None = None

    def tell(self) -> Finding:
        """The finding as a report has it."""
        message, advice = self.facts.say()
        return Finding(
            kind=self.kind,
            message=message,
            advice=advice,
            gain_permille=self.gain_permille,
            measure=self.measure,
            value_ns=self.value_ns,
            ranks=self.ranks,
            names=self.names,
            place=self.place,
            part=self.guard.part,
        )


@dataclass(frozen=True, slots=True)
class RanksOfKind:
    """The ranks of a report that have GPUs, or those that have none, with their sums.

    `held_up` is the finding of the straggler verdict, where there is one. `loading_gain` is what all data loading costs
    by the replay of all ranks, which holds what ranks wait for others' batches; share of the iteration.
    """

    report: Report
    total: KindTotal
    ranks: Sequence[Rank]
    held_up: MeasuredFinding | None = None
    loading_gain: float = 0.0


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A kind of finding: the guards of its sentences, and the function that finds it."""

    kind: str
    guards: tuple[SentenceGuard, ...]
    find: Callable[[RanksOfKind], MeasuredFinding | None]


def find_uneven(ranks: Sequence[Rank], time_ns: Callable[[Rank], int]) -> list[int]:
    """The ranks that stand out, if some do: twice the median rank's share and more."""
    shares = sorted((time_ns(rank) / max(1, rank.time_ns.span), rank.rank) for rank in ranks if rank.rank is not None)
    if len(shares) < _FEWEST_UNEVEN:
        return []
    middle = max(shares[len(shares) // 2][0], _LEAST_UNEVEN)
    return [rank for share, rank in reversed(shares) if UNEVEN.allows(share, middle)][:MOST_RANKS]
