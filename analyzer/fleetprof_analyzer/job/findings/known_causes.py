"""Known causes as findings: what all ranks of a kind lose to one, by the median rank, and what that leaves to say.

Guarantees: pure; a cause that the verdict on stragglers names is not told once more; a finding that a cause explains
is left out, because its advice would be another one.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Final

from fleetprof_api.report.rank_tables import KnownCauseName
from fleetprof_api.report.report import Rank
from fleetprof_api.report.stragglers import Cause, Stragglers

from fleetprof_analyzer.job.findings.found import OF_CAUSES, MeasuredFinding, ProvenCause
from fleetprof_analyzer.job.findings.guards import SentenceGuard
from fleetprof_analyzer.rank.causes.registry import CAUSE_RULES, CauseRule

_EXPLAINS: Final = 0.5  # of what another finding takes
_OF_STRAGGLERS: Final[Mapping[KnownCauseName, Cause]] = {"garbage_collection": "garbage_collection"}
"""What a verdict on stragglers calls it."""
CAUSE_GUARDS: Final[Mapping[KnownCauseName, SentenceGuard]] = {
    rule.name: SentenceGuard(
        place=f"finding {rule.name}",
        figure="ranks.causes.time_ns",
        whole="the median rank's iterations",
        least_permille=rule.least_permille,
        part="host",
    )
    for rule in CAUSE_RULES
}


def find_proven_causes(ranks: Sequence[Rank], stragglers: Stragglers | None) -> list[MeasuredFinding]:
    """Of ranks of one kind. Rules: docs/measures.md#known-causes."""
    named = _named_causes(stragglers)
    found = (_find(rule, ranks) for rule in CAUSE_RULES if _OF_STRAGGLERS.get(rule.name) not in named)
    return [finding for finding in found if finding is not None]


def leave_out_explained(found: Sequence[MeasuredFinding], causes: Sequence[MeasuredFinding]) -> list[MeasuredFinding]:
    """The findings without those that a proven cause explains."""
    explains = {rule.name: rule.explains for rule in CAUSE_RULES}
    explained = {
        id(one)
        for one in found
        for cause in causes
        if isinstance(cause.facts, ProvenCause)
        and one.kind in explains[cause.facts.known.cause]
        and cause.gain_permille >= _EXPLAINS * one.gain_permille
    }
    return [one for one in found if id(one) not in explained]


def _named_causes(found: Stragglers | None) -> set[Cause | None]:
    if found is None or found.verdict in ("nobody", "not_judged", "undecided"):
        return set()
    return {found.cause, *(one.cause for one in found.ranks)}


def _find(rule: CauseRule, ranks: Sequence[Rank]) -> MeasuredFinding | None:
    known = [next((one for one in rank.causes if one.cause == rule.name), None) for rank in ranks]
    spans = [sum(one.duration_ns for one in rank.iterations) for rank in ranks]
    shares = [
        1000 * one.time_ns // span if one is not None else 0 for one, span in zip(known, spans, strict=True) if span > 0
    ]
    here = [(one, rank) for one, rank in zip(known, ranks, strict=True) if one is not None]
    permille = median_low(shares) if shares else 0
    guard = CAUSE_GUARDS[rule.name]
    if not here or not guard.allows(permille, 1000):
        return None
    most, rank = max(here, key=lambda one: (one[0].place is not None, one[0].time_ns))
    return MeasuredFinding(
        kind=rule.name,
        facts=ProvenCause(most, len(rank.iterations)),
        guard=guard,
        gain_permille=permille,
        measure=OF_CAUSES,
        value_ns=sum(one.time_ns for one, _ in here),
        place=most.place,
    )
