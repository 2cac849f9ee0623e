"""Turns measures into a short ranked list of what is worth doing, before its sentences (docs/measures.md#findings).

Guarantees: pure; silent where there is nothing to say; every finding passes a threshold that is written beside it, and
its gain is an upper bound that the report's own numbers prove; at most `_MOST`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import KindTotal, Rank, Report
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.findings import guards
from fleetprof_analyzer.job.findings.busy_cores import are_cores_busy
from fleetprof_analyzer.job.findings.exposed import judge_exposed
from fleetprof_analyzer.job.findings.found import ExposedCopies, HeldUp, IdleDevice, IdleKind, MeasuredFinding
from fleetprof_analyzer.job.findings.guards import SentenceGuard
from fleetprof_analyzer.job.findings.host_findings import find_host_findings, find_longest_place
from fleetprof_analyzer.job.findings.idle_place import find_worst_place, find_zero_grad, operators_of
from fleetprof_analyzer.job.findings.known_causes import find_proven_causes, leave_out_explained
from fleetprof_analyzer.job.findings.long_iterations import find_long_iterations, leave_out_told

_MOST: Final = 6
_MOST_RANKS: Final = 8
_MOST_NAMES: Final = 5
_SAMPLED_PERMILLE: Final = 500
_FEWEST_UNEVEN: Final = 3
_LEAST_UNEVEN: Final = 0.0005  # of its time: what the median rank has at least, for another to stand out


@dataclass(frozen=True, slots=True)
class _Rule:
    """An idle cause that is worth a finding from its guard's share of the devices' time on."""

    kind: IdleKind
    guard: SentenceGuard
    time_ns: Callable[[IdleCauses], int]


_RULES: Final = (
    _Rule("data_loading", guards.DATA_LOADING, lambda idle: idle.data_loading),
    _Rule("synchronization", guards.SYNCHRONIZATION, lambda idle: idle.synchronization),
    _Rule(
        "launch_bound", guards.LAUNCH_BOUND, lambda idle: idle.launching + idle.host_operators + idle.host_runtime
    ),
    _Rule("python", guards.PYTHON, lambda idle: idle.host_python),
    _Rule("allocation", guards.ALLOCATION, lambda idle: idle.host_allocation),
    _Rule("optimizer", guards.OPTIMIZER, lambda idle: idle.optimizer),
    _Rule("waiting", guards.WAITING, lambda idle: idle.waiting - idle.waiting_short),
)  # fmt: skip
READING_OPERATORS: Final = frozenset(
    f"aten::{name}" for name in ("item", "_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select")
)
"""That wait for a device to read a value from it."""
_UNEXPLAINED: Final = 1.5


def find_findings(report: Report, loading_gain: float = 0.0) -> list[MeasuredFinding]:
    """The findings of a report, the largest gain first.

    `loading_gain`: what all data loading costs by the replay of all ranks, which holds what ranks wait for others'
    batches; share of the iteration.
    """
    found, causes = _straggler(report.stragglers, report.ranks), list[MeasuredFinding]()
    by_launches = sorted(report.launching_operators, key=lambda operator: -operator.own_launches)
    launching = [operator.name for operator in by_launches if not operator.name.startswith("(")][:_MOST_NAMES]
    for total in report.totals:
        ranks = [rank for rank in report.ranks if rank.kind == total.kind]
        # What a rank's fault makes the others wait is told with the rank, not once more as communication.
        if not found:
            found += _communication(report, total, ranks)
        found += _copies(total, ranks)
        found += _long_iterations(ranks, found)
        if total.kind == "cpu":
            found += find_host_findings(ranks)
        sampled = any(
            rank.recorded_permille is not None and rank.recorded_permille < _SAMPLED_PERMILLE for rank in ranks
        )
        names = {"launch_bound": launching, "synchronization": _that_read(report)}
        if total.idle_ns is not None and not sampled:
            replayed = {"data_loading": int(1000 * loading_gain)}
            found += [finding for rule in _RULES if (finding := _idle(rule, total, ranks, names, replayed)) is not None]
        long = next((one for one in found if one.kind == "long_iterations"), None)
        found = found if long is None else leave_out_told(found, long, ranks)
        causes += find_proven_causes(ranks, report.stragglers)
    found = [*leave_out_explained(found, causes), *causes]
    return sorted(found, key=lambda finding: (-finding.gain_permille, finding.kind))[:_MOST]


def _idle(
    rule: _Rule, total: KindTotal, ranks: Sequence[Rank], names: dict[str, list[str]], replayed: dict[str, int]
) -> MeasuredFinding | None:
    if total.idle_ns is None or total.time_ns.span <= 0:
        return None
    time_ns = rule.time_ns(total.idle_ns)
    permille = max(1000 * time_ns // total.time_ns.span, replayed.get(rule.kind, 0))
    if not rule.guard.allows(permille, 1000):
        return None
    uneven = _uneven(ranks, lambda rank: 0 if rank.idle_ns is None else rule.time_ns(rank.idle_ns))
    chosen = [rank for rank in ranks if not uneven or rank.rank in uneven]
    place, place_permille = find_worst_place(rule.kind, chosen, rule.time_ns)
    around = [] if place is None else operators_of(place)
    return MeasuredFinding(
        kind=rule.kind,
        facts=IdleDevice(
            rule.kind,
            place,
            place_permille,
            find_zero_grad(place, chosen) if rule.kind == "optimizer" else "",
            rule.kind == "data_loading" and are_cores_busy(ranks),
        ),
        guard=rule.guard,
        gain_permille=permille,
        measure=f"totals.{rule.guard.figure}",
        value_ns=time_ns,
        ranks=uneven,
        names=list(dict.fromkeys([*names.get(rule.kind, []), *around]))[:_MOST_NAMES],
        place=None if place is None else place.place,
    )


def _that_read(report: Report) -> list[str]:
    """Operators that wait for the device to read a value from it, the most calls first."""
    reading = [one for one in report.launching_operators if one.name in READING_OPERATORS]
    return [one.name for one in sorted(reading, key=lambda one: (-one.calls, one.name))][:_MOST_NAMES]


def _communication(report: Report, total: KindTotal, ranks: Sequence[Rank]) -> list[MeasuredFinding]:
    exposed, span = total.time_ns.exposed_communication, total.time_ns.span
    permille = 1000 * exposed // span if span > 0 else 0
    if not guards.EXPOSED_COMMUNICATION.allows(exposed, span):
        return []
    longest = [f"{row.kind} {row.group}".strip() for row in report.communication[:_MOST_NAMES]]
    return [
        MeasuredFinding(
            kind="exposed_communication",
            facts=judge_exposed(
                report.stragglers,
                report.communication,
                exposed=exposed / span,
                ranks=len(report.ranks),
                waits_for_cores=total.kind == "cpu" and are_cores_busy(ranks),
                iterations=max((len(rank.iterations) for rank in ranks), default=0),
            ),
            guard=guards.EXPOSED_COMMUNICATION,
            gain_permille=permille,
            measure="totals.time_ns.exposed_communication",
            value_ns=exposed,
            ranks=_uneven(ranks, lambda rank: rank.time_ns.exposed_communication),
            names=list(dict.fromkeys(longest)),
        )
    ]


def _copies(total: KindTotal, ranks: Sequence[Rank]) -> list[MeasuredFinding]:
    exposed, span = total.time_ns.exposed_memory, total.time_ns.span
    permille = 1000 * exposed // span if span > 0 else 0
    if not guards.EXPOSED_COPIES.allows(exposed, span):
        return []
    pageable = any(copy.pageable for rank in ranks for copy in rank.copies)
    return [
        MeasuredFinding(
            kind="exposed_copies",
            facts=ExposedCopies(pageable),
            guard=guards.EXPOSED_COPIES,
            gain_permille=permille,
            measure="totals.time_ns.exposed_memory",
            value_ns=exposed,
            ranks=_uneven(ranks, lambda rank: rank.time_ns.exposed_memory),
        )
    ]


def _long_iterations(ranks: Sequence[Rank], others: Sequence[MeasuredFinding]) -> list[MeasuredFinding]:
    """None where a rank is named whose pauses explain most of it: they make iterations of all ranks long."""
    found = find_long_iterations(ranks)
    explained = max((one.gain_permille for one in others if one.measure == "stragglers"), default=0)
    return [found] if found is not None and found.gain_permille > _UNEXPLAINED * explained else []


def _place(found: Stragglers, ranks: Sequence[Rank]) -> PlaceInCode | None:
    """Where the first rank is late; of pauses that move, where most of them are."""
    if found.ranks:
        return found.ranks[0].place
    return find_longest_place(ranks) if found.cause == "host" else None


def _straggler(found: Stragglers | None, ranks: Sequence[Rank]) -> list[MeasuredFinding]:
    if found is None or found.verdict in ("nobody", "not_judged"):
        return []
    permille = round(1000 * found.gain)
    if not guards.HELD_UP.allows(permille, 1000):
        return []
    return [
        MeasuredFinding(
            kind=found.verdict,
            facts=HeldUp(),
            guard=guards.HELD_UP,
            gain_permille=permille,
            measure="stragglers",
            place=_place(found, ranks),
            ranks=[rank.rank for rank in found.ranks[:_MOST_RANKS]],
        )
    ]


def _uneven(ranks: Sequence[Rank], time_ns: Callable[[Rank], int]) -> list[int]:
    """The ranks that stand out, if some do: twice the median rank's share and more."""
    shares = sorted((time_ns(rank) / max(1, rank.time_ns.span), rank.rank) for rank in ranks if rank.rank is not None)
    if len(shares) < _FEWEST_UNEVEN:
        return []
    middle = max(shares[len(shares) // 2][0], _LEAST_UNEVEN)
    return [rank for share, rank in reversed(shares) if guards.UNEVEN.allows(share, middle)][:_MOST_RANKS]
