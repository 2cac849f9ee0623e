"""Known causes as findings: the share that all ranks of a kind lose to one cause, by the median rank.

Where it is open whether a rank is late, what is proven of that rank alone is told of it. Guarantees: pure; a cause that
the verdict on stragglers names is not told once more; a finding that a cause explains is left out, because its advice
would be another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName
from fleetprof_api.report.report import Rank
from fleetprof_api.report.stragglers import Cause, Stragglers

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.findings.known_cause_kinds import KINDS, KnownCauseKind

OF_CAUSES: Final = "ranks.causes"
"""The measure of every proven cause, by which a headline knows one."""
_EXPLAINS: Final = 0.5  # of what another finding takes
_OF_STRAGGLERS: Final[Mapping[KnownCauseName, Cause]] = {"garbage_collection": "garbage_collection"}
"""The name of a cause in a verdict on stragglers."""


KIND_OF: Final[Mapping[KnownCauseName, KnownCauseKind]] = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class ProvenCause:
    """A known cause on all ranks; `known` is that of the rank with the most, of so many iterations."""

    known: KnownCause
    of_iterations: int

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        kind = KIND_OF[self.known.cause]
        return kind.message(self.known, self.of_iterations), kind.advice


def leave_out_explained(found: Sequence[MeasuredFinding]) -> list[MeasuredFinding]:
    """The findings without those that a proven cause among them explains."""
    explained = {
        id(one)
        for one in found
        for cause in found
        if isinstance(cause.facts, ProvenCause)
        and one.kind in KIND_OF[cause.facts.known.cause].explains
        and cause.gain_permille >= _EXPLAINS * one.gain_permille
    }
    return [one for one in found if id(one) not in explained]


def _named_causes(found: Stragglers | None) -> set[Cause | None]:
    if found is None or found.verdict in ("nobody", "not_judged", "undecided"):
        return set()
    return {found.cause, *(one.cause for one in found.ranks)}


def _known(kind: KnownCauseKind, rank: Rank) -> KnownCause | None:
    return next((one for one in rank.causes if one.cause == kind.name), None)


def _share(kind: KnownCauseKind, rank: Rank) -> int:
    """Permille that the cause takes of the rank's iterations."""
    known, span = _known(kind, rank), sum(one.duration_ns for one in rank.iterations)
    if known is None or span <= 0:
        return 0
    return 1000 * known.time_ns // span if known.gain_permille is None else known.gain_permille


def _is_named(kind: KnownCauseKind, view: RanksOfKind) -> bool:
    return _OF_STRAGGLERS.get(kind.name) in _named_causes(view.report.stragglers)


def _find_on_all(kind: KnownCauseKind, view: RanksOfKind) -> MeasuredFinding | None:
    if _is_named(kind, view):
        return None
    ranks = view.ranks
    here = [(one, rank) for rank in ranks if (one := _known(kind, rank)) is not None]
    shares = [_share(kind, rank) for rank in ranks if any(one.duration_ns > 0 for one in rank.iterations)]
    permille = median_low(shares) if shares else 0
    if not here or not kind.guard.allows(permille, 1000):
        return None
    most, rank = max(here, key=lambda one: (one[0].place is not None, one[0].time_ns))
    return MeasuredFinding(
        kind=kind.name,
        facts=ProvenCause(most, len(rank.iterations)),
        guard=kind.guard,
        gain_permille=permille,
        measure=OF_CAUSES,
        value_ns=sum(one.time_ns for one, _ in here),
        place=most.place,
    )


def _find_on_candidate(kind: KnownCauseKind, view: RanksOfKind) -> MeasuredFinding | None:
    """A cause that takes more of the rank that may be late than of the others: whether it is late is open."""
    stragglers, ranks = view.report.stragglers, view.ranks
    candidate = None if stragglers is None or stragglers.verdict != "undecided" else stragglers.candidate
    if candidate is None or _is_named(kind, view):
        return None
    rank = next((rank for rank in ranks if rank.rank == candidate.rank), None)
    others = [_share(kind, rank) for rank in ranks if rank.rank != candidate.rank]
    if rank is None or not others or (known := _known(kind, rank)) is None:
        return None
    permille = min(_share(kind, rank) - median_low(others), round(1000 * candidate.gain))
    if not kind.guard.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind=kind.name,
        facts=ProvenCause(known, len(rank.iterations)),
        guard=kind.guard,
        gain_permille=permille,
        measure=OF_CAUSES,
        value_ns=known.time_ns,
        ranks=[candidate.rank],
        place=known.place,
    )


def _make_rules(kind: KnownCauseKind) -> tuple[FindingRule, FindingRule]:
    """Without a guard in the list of all: docs have a table of these alone."""
    return (
        FindingRule(kind.name, (), lambda view: _find_on_all(kind, view)),
        FindingRule(kind.name, (), lambda view: _find_on_candidate(kind, view)),
    )


RULES: Final = tuple(rule for kind in KINDS for rule in _make_rules(kind))
