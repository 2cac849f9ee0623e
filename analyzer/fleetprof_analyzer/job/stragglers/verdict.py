"""Decides who holds the job up, from the operations of all ranks.

In this order: ranks that are late against their peers; slow links; a stage that is too heavy; work that moves;
nobody. Formulas: docs/measures.md#stragglers. Guarantees: pure; no verdict rests on a difference of two clocks; what
the traces cannot tell is said instead of guessed.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import numpy as np
from fleetprof_api.report.stragglers import Cause, ClockAlignment, SlowLink, Straggler, Stragglers, Undecided

from fleetprof_analyzer.job.stragglers.causes.loaders import find_slow_loaders
from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic
from fleetprof_analyzer.job.stragglers.causes.unequal_work import weigh_work
from fleetprof_analyzer.job.stragglers.comparable import choose_comparable, say_untold
from fleetprof_analyzer.job.stragglers.faults import Judged, judge, least_joint_gain
from fleetprof_analyzer.job.stragglers.imbalance import find_imbalance
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate, find_candidates
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime, tabulate
from fleetprof_analyzer.job.stragglers.missing import find_missing
from fleetprof_analyzer.job.stragglers.named_ranks import describe_fault, describe_link, describe_stage, rank_of
from fleetprof_analyzer.job.stragglers.network import Links, find_slow_links
from fleetprof_analyzer.job.stragglers.reasons import (
    NOBODY,
    name_ranks,
    say_heavy_stage,
    say_slow_link,
    say_straggler,
    say_too_few,
    say_undecided,
)
from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks, ends_together
from fleetprof_analyzer.job.stragglers.replay.matching import Matched, match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_roles
from fleetprof_analyzer.job.stragglers.replay.schedule import Circular
from fleetprof_analyzer.job.stragglers.same_kernels import find_slow_devices
from fleetprof_analyzer.job.stragglers.undecided import Power, find_power
from fleetprof_analyzer.rank.communication.operations import KINDS, RankOperations, UnreadableOperations, decode

log = logging.getLogger(__name__)

_LEAST_ITERATIONS: Final = 3
_FAITHFUL: Final = 0.03
_MOST_SHOWN: Final = 16
_NO_POWER: Final = Power(None, None)
_NO_LINKS: Final = Links([], [], 0.0, 0, judged=True)
_MOVING: Final[dict[Cause, str]] = {
    "unequal_work": "the work differs from iteration to iteration and from rank to rank; no rank is late by itself",
    "data_loading": "each iteration waits for another rank's batch; no rank is late by itself",
    "garbage_collection": "the ranks collect garbage now and then, each at another time",
    "host": "the hosts of all ranks pause now and then, each at another time",
}


def judge_summaries(summaries: Sequence[tuple[int | None, bytes, int]]) -> Stragglers | None:
    """The verdict over encoded operations: (rank, bytes, their length where they lie elsewhere) of each summary.

    None where fewer than two ranks communicate. A fault of this analysis costs its section, never the report.
    """
    operations, lost = [], []
    for rank, data, length in summaries:
        if not data:
            lost += [rank] if length else []
            continue
        try:
            operations.append(decode(data))
        except UnreadableOperations:
            lost.append(rank)
    if lost and len(operations) < 2:
        return Stragglers(reason=f"the operations of {len(lost)} ranks were not stored with their summaries")
    try:
        found = find_stragglers(operations, [rank for rank, _, _ in summaries])
    except MemoryError:
        return Stragglers(reason="there is not enough memory to compare the ranks' operations")
    except Exception as error:
        log.exception("the straggler analysis failed")
        return Stragglers(reason=f"a fault of the analyzer: {type(error).__name__}: {error}"[:300])
    if found is None or not lost:
        return found
    said = f"The operations of {name_ranks([rank for rank in lost if rank is not None])} were not stored"
    return msgspec.structs.replace(found, unidentifiable=[*found.unidentifiable, said])


def find_stragglers(operations: Sequence[RankOperations], delivered: Sequence[int | None] = ()) -> Stragglers | None:
    """The verdict over all ranks; None where there are not two ranks that communicate.

    `delivered`: ranks that have a trace, also where their operations are not here.
    """
    found = _find_stragglers(operations, {*delivered, *(one.rank for one in operations)})
    if found is None or not found.not_captured or found.verdict != "nobody":
        return found
    missing = f"as far as the captured ranks tell: {name_ranks(found.not_captured)} left no trace"
    return msgspec.structs.replace(found, reason=f"{found.reason}, {missing}")


def _find_stragglers(operations: Sequence[RankOperations], delivered: set[int | None]) -> Stragglers | None:
    ranks, left_out = choose_comparable(operations)
    if len(ranks) < 2:
        return Stragglers(reason="; ".join(left_out)) if left_out and len(operations) > 1 else None
    if any(one.sampled for one in ranks):
        return Stragglers(reason="the traces hold a sample of the operations only: own times are not known")
    matched = match(ranks)
    if matched.reason:
        return Stragglers(reason=f"the operations of the ranks cannot be matched: {matched.reason}")
    if matched.guessed and not ends_together(matched):
        return Stragglers(
            reason="the traces do not say which process group an operation belongs to, and the ranks are in several"
        )
    try:
        replay = Replay(matched)
    except Circular:
        return Stragglers(
            reason="the matched operations wait for each other in a circle; the order of launches is lost"
        )
    role = find_roles(matched, replay.strays)
    table = tabulate(replay, role)
    candidates = add_rhythmic(table, find_candidates(table), matched.iterations)
    # Of ranks without peers what goes on all the time is told by what all ranks have in common.
    slow_loaders, extra = find_slow_loaders(replay, table)
    candidates = slow_loaders + [candidate for candidate in candidates if candidate.rank not in extra]
    slow_devices, times = find_slow_devices(replay, table)
    known = {candidate.rank for candidate in candidates}
    candidates += [candidate for candidate in slow_devices if candidate.rank not in known]
    candidates = weigh_work(table, candidates, on_host=all(one.kind == "cpu" for one in matched.ranks))
    extra |= {rank: both for rank, both in times.items() if rank not in known}
    judged = judge(replay, table, candidates, extra)
    missing = find_missing(operations, matched.missing, delivered)
    return _report(replay, table, judged, left_out, missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """The verdict itself, with whom it names; `moving`: what moves from rank to rank."""

    verdict: Literal["straggler", "heavy_stage", "slow_link", "moving_imbalance", "nobody", "undecided"]
    reason: str
    named: list[Straggler] = field(default_factory=list)
    gain: float = 0.0
    links: Links = _NO_LINKS
    moving: Cause | None = None
    power: Power = _NO_POWER


def _decide(replay: Replay, table: OwnTime, judged: Judged) -> _Decision:
    if _has_too_few(replay):
        reason = say_too_few(len(replay.matched.iterations), _LEAST_ITERATIONS)
        return _Decision(verdict="undecided", reason=reason)
    if judged.named:
        named = [describe_fault(replay, table, fault) for fault in judged.named]
        return _Decision(verdict="straggler", reason=say_straggler(named), named=named, gain=judged.joint_gain)
    links, imbalance = find_slow_links(replay, table.role), find_imbalance(replay, table)
    power = _power(replay, table, judged)
    if links.slow:
        slowest = [rank_of(replay, member) for member in links.slow[0].members]
        return _Decision(
            verdict="slow_link", reason=say_slow_link(links, slowest, [rank_of(replay, rank) for rank in links.ranks]),
            named=[describe_link(replay, links, rank) for rank in links.ranks], gain=links.gain, links=links,
            power=power,
        )  # fmt: skip
    if imbalance.heaviest:
        named = [describe_stage(replay, imbalance, rank) for rank in imbalance.heaviest]
        return _Decision(
            verdict="heavy_stage", reason=say_heavy_stage([one.rank for one in named], imbalance.excess), named=named,
            gain=imbalance.stage_gain, links=links, power=power,
        )  # fmt: skip
    if power.candidate is not None:
        return _Decision(verdict="undecided", reason=say_undecided(power.candidate), links=links, power=power)
    if imbalance.moves:
        return _Decision(
            verdict="moving_imbalance", reason=_MOVING[imbalance.moves], gain=imbalance.moving_gain, links=links,
            moving=imbalance.moves, power=power,
        )  # fmt: skip
    if power.hidden is not None:
        hidden = Power(power.hidden, power.smallest_gain)
        return _Decision(verdict="undecided", reason=say_undecided(power.hidden), links=links, power=hidden)
    return _Decision(verdict="nobody", reason=NOBODY, links=links, power=power)


def _has_too_few(replay: Replay) -> bool:
    return len(replay.matched.iterations) < _LEAST_ITERATIONS


def _report(replay: Replay, table: OwnTime, judged: Judged, left_out: list[str], missing: list[int]) -> Stragglers:
    matched, fidelity = replay.matched, replay.fidelity()
    decision = _decide(replay, table, judged)
    verdict, links, power = decision.verdict, decision.links, decision.power
    order = [*judged.named, *judged.others] if _has_too_few(replay) else judged.others
    return Stragglers(
        verdict=verdict,
        reason=decision.reason,
        ranks=decision.named,
        cause=decision.moving,
        order=[describe_fault(replay, table, fault) for fault in order][:_MOST_SHOWN],
        candidate=power.candidate if verdict == "undecided" else None,
        smallest_gain=power.smallest_gain if verdict in ("nobody", "undecided", "moving_imbalance") else None,
        slow_links=[
            SlowLink(
                ranks=[rank_of(replay, member) for member in group.members],
                collective=KINDS[group.kind],
                factor=group.factor,
                operations=group.operations,
                transfer_ns=group.transfer_ns,
                usual_ns=group.sisters_ns,
            )
            for group in links.slow[:_MOST_SHOWN]
        ],
        gain=max(decision.gain, 0.0),
        approximate=abs(fidelity - 1) > _FAITHFUL,
        fidelity=fidelity,
        transfer_share=_transfer_share(replay),
        iterations=matched.iterations,
        matched_by=matched.method,
        operations=matched.operations,
        unmatched=matched.unmatched,
        not_captured=missing,
        clocks=_clocks(matched),
        unidentifiable=say_untold(table, matched, left_out, missing, links_judged=links.judged),
    )


def _transfer_share(replay: Replay) -> float | None:
    """What of the ranks' time in collectives is transfer: the shortest duration of each one."""
    inside = replay.iteration >= 0
    total = int(replay.duration_ns[inside].sum())
    return float(replay.transfer_ns[replay.layout.collective[inside]].sum() / total) if total else None


def _clocks(matched: Matched) -> ClockAlignment:
    found = align_clocks(matched)
    return ClockAlignment(
        residual_median_ns=found.residual_median_ns,
        residual_most_ns=found.residual_most_ns,
        unaligned=[
            one.rank for one, is_one in zip(matched.ranks, found.aligned, strict=True) if not is_one and one.rank
        ],
    )


def _power(replay: Replay, table: OwnTime, judged: Judged) -> Power:
    """What noise leaves open; a rank whose own time costs nothing in the replay is no candidate."""
    cleared = {fault.candidate.rank for fault in judged.others}
    count = max(len(replay.matched.iterations), 1)
    iteration_ns = float(replay.run([replay.as_measured()]).total_ns[0]) / count
    least_gain = least_joint_gain(replay)
    found = find_power(table, iteration_ns, least_gain, cleared)

    def confirm(suspect: Undecided | None) -> Undecided | None:
        if suspect is None:
            return None
        whole = Candidate(suspect.rank, "persistent", suspect.gain, np.ones(count, np.bool_))
        if judge(replay, table, [whole], {}).joint_gain < least_gain:
            return None
        return msgspec.structs.replace(suspect, rank=rank_of(replay, suspect.rank))

    return Power(confirm(found.candidate), found.smallest_gain, confirm(found.hidden))
