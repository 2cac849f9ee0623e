"""Decides who holds the job up, from the operations of all ranks.

In this order: ranks that are late against their peers; slow links; a stage that is too heavy; work that moves;
nobody. Formulas: docs/measures.md#stragglers. Guarantees: pure; no verdict rests on a difference of two clocks; what
the traces cannot tell is said instead of guessed.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import msgspec
import numpy as np
from fleetprof_api.report.stragglers import Cause, ClockAlignment, SlowLink, Straggler, Stragglers, Undecided

from fleetprof_analyzer.job.stragglers.comparable import choose_comparable, find_untold
from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.judgement.reasons import (
    AnalyzerFault,
    Disputed,
    HeavyStage,
    LateRanks,
    Moving,
    Nobody,
    NotComparable,
    NotStored,
    Obstacle,
    Reason,
    SlowLinks,
    TooFewIterations,
    TooNoisy,
    Unfaithful,
    Unseen,
    Unsure,
    UnsureTurns,
)
from fleetprof_analyzer.job.stragglers.judgement.untold import OperationsLost, Untold
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.loading import measure_loading_gain
from fleetprof_analyzer.job.stragglers.missing import find_missing
from fleetprof_analyzer.job.stragglers.named_ranks import describe_fault, describe_link, describe_stage, rank_of
from fleetprof_analyzer.job.stragglers.network import Links
from fleetprof_analyzer.job.stragglers.pipeline.bubbles import measure_bubbles
from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks, ends_together
from fleetprof_analyzer.job.stragglers.replay.graph.plan import Circular
from fleetprof_analyzer.job.stragglers.replay.matching import Matched, match
from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.job.stragglers.replay.partners.periods import agree_on_periods
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.search.faults import Judged, judge, least_joint_gain
from fleetprof_analyzer.job.stragglers.search.groups import find_groups
from fleetprof_analyzer.job.stragglers.search.readings import Agreed, read_hosts
from fleetprof_analyzer.job.stragglers.thresholds import FAITHFUL, FEWEST, HALF
from fleetprof_analyzer.job.stragglers.undecided import Power, find_power
from fleetprof_analyzer.rank.communication.operations import KINDS, RankOperations, UnreadableOperations, decode

log = logging.getLogger(__name__)

_MOST_SHOWN: Final = 16
_OF_NO_RANK: Final = ("nobody", "undecided", "moving_imbalance")
_NO_POWER: Final = Power(None, None)
_NO_LINKS: Final = Links([], [], 0.0, 0, judged=True)


def judge_summaries(
    summaries: Sequence[tuple[int | None, bytes, int]], hosts: Mapping[int, str] | None = None
) -> Judgement | None:
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
        return _without_verdict(NotStored(len(lost)))
    try:
        found = find_stragglers(operations, [rank for rank, _, _ in summaries], hosts)
    except MemoryError:
        return _without_verdict(Obstacle.MEMORY)
    except Exception as error:
        log.exception("the straggler analysis failed")
        return _without_verdict(AnalyzerFault(type(error).__name__, str(error)))
    if found is None or not lost:
        return found
    return replace(found, untold=[*found.untold, OperationsLost([rank for rank in lost if rank is not None])])


def _without_verdict(reason: Reason) -> Judgement:
    return Judgement(Stragglers(), reason)


def find_stragglers(
    operations: Sequence[RankOperations], delivered: Sequence[int | None] = (), hosts: Mapping[int, str] | None = None
) -> Judgement | None:
    """The verdict over all ranks; None where there are not two ranks that communicate.

    `delivered`: ranks that have a trace, also where their operations are not here; `hosts`: of ranks, where known.
    """
    here = {*delivered, *(one.rank for one in operations)}
    ranks, left_out = choose_comparable(agree_on_periods(operations))
    if len(ranks) < 2:
        return _without_verdict(NotComparable(left_out)) if left_out and len(operations) > 1 else None
    if any(one.sampled for one in ranks):
        return _without_verdict(Obstacle.SAMPLED)
    matched = match(ranks)
    if matched.mismatch is not None:
        return _without_verdict(matched.mismatch)
    if matched.guessed and not ends_together(matched):
        return _without_verdict(Obstacle.SEVERAL_GROUPS)
    if matched.operations == 0:
        return _without_verdict(Mismatch("no_common_iteration"))
    try:
        agreed = read_hosts(replace(matched, hosts=[(hosts or {}).get(one.rank or 0, "") for one in matched.ranks]))
    except Circular:
        return _without_verdict(Obstacle.CIRCLE)
    return _report(agreed, left_out, find_missing(operations, matched.missing, here))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """The verdict itself, with whom it names; `moving`: what moves from rank to rank."""

    verdict: Literal["straggler", "heavy_stage", "slow_link", "moving_imbalance", "nobody", "undecided"]
    reason: Reason
    named: list[Straggler] = field(default_factory=list)
    gain: float = 0.0
    links: Links = _NO_LINKS
    moving: Cause | None = None
    power: Power = _NO_POWER
    by_gaps: bool = False  # by the other reading of the hosts


def _decide(agreed: Agreed, missing: list[int]) -> _Decision:
    replay, table, judged = agreed.search.replay, agreed.search.table, agreed.judged
    if _has_too_few(replay):
        return _Decision(verdict="undecided", reason=TooFewIterations(len(replay.matched.iterations), FEWEST))
    if judged.named:
        named = [describe_fault(replay, table, fault) for fault in judged.named]
        late = LateRanks([one.rank for one in named], named[0].peers)
        return _Decision(verdict="straggler", reason=late, named=named, gain=judged.joint_gain)
    power = _power(replay, table, judged)
    groups = find_groups(agreed)
    links, imbalance, replay = groups.links, groups.imbalance, groups.search.replay
    by_gaps = groups.search is not agreed.search
    if links.slow:
        slowest, meeting = ([rank_of(replay, one) for one in ranks] for ranks in (links.slow[0].members, links.ranks))
        return _Decision(
            verdict="slow_link", reason=SlowLinks(len(links.slow), slowest, links.slow[0].factor, meeting),
            named=[describe_link(replay, links, rank) for rank in links.ranks], gain=links.gain, links=links,
            power=power, by_gaps=by_gaps,
        )  # fmt: skip
    if imbalance.heaviest:
        named = [describe_stage(replay, imbalance, rank) for rank in imbalance.heaviest]
        return _Decision(
            verdict="heavy_stage", reason=HeavyStage([one.rank for one in named], imbalance.excess, imbalance.cause),
            named=named,
            gain=imbalance.stage_gain, links=links, power=power, by_gaps=by_gaps,
        )  # fmt: skip
    if agreed.disputed is not None:
        rank = agreed.disputed.candidate.rank
        has_operators = len(replay.matched.ranks[rank].operators) > 0
        disputed = Disputed(rank_of(replay, rank), agreed.disputed.gain_alone, has_operators)
        return _Decision(verdict="undecided", reason=disputed, links=links)
    if power.candidate is not None and not imbalance.by_turns:
        return _Decision(verdict="undecided", reason=Unsure(power.candidate), links=links, power=power)
    if imbalance.moves:
        return _Decision(
            verdict="moving_imbalance", reason=Moving(imbalance.moves), gain=imbalance.moving_gain, links=links,
            moving=imbalance.moves, power=power,
        )  # fmt: skip
    if power.hidden is not None:
        hidden = replace(power, candidate=power.hidden)
        return _Decision(verdict="undecided", reason=Unsure(power.hidden), links=links, power=hidden)
    if imbalance.turns_need is not None:
        return _Decision(verdict="undecided", reason=UnsureTurns(imbalance.turns_need), links=links, power=power)
    if power.hides_all:
        noise = TooNoisy(len(replay.matched.iterations))
        return _Decision(verdict="undecided", reason=noise, links=links, power=power)
    off = abs(replay.fidelity() - 1)
    if links.denied and off > FAITHFUL:
        return _Decision(verdict="undecided", reason=Unfaithful(replay.fidelity()), links=links, power=power)
    if missing:
        if (unseen := _find_unseen(replay, judged, missing)) is not None:
            return _Decision(verdict="undecided", reason=unseen, links=links, power=power)
        if off > FAITHFUL:
            return _Decision(verdict="undecided", reason=Unfaithful(replay.fidelity()), links=links, power=power)
    if power.smallest_gain is not None:
        hidden_gain = off if missing else HALF * off if off > FAITHFUL else 0.0  # nobody is named for less
        power = replace(power, smallest_gain=max(power.smallest_gain, hidden_gain, imbalance.untold_gain))
    alone = not any(len(table.peers(rank)) for rank in range(len(table.role)))
    return _Decision(verdict="nobody", reason=Nobody(missing, alone, power.smallest_gain), links=links, power=power)


def _find_unseen(replay: Replay, judged: Judged, missing: list[int]) -> Unseen | None:
    """The delays that the missing ranks may hide: their own, or those of ranks that they wait for."""
    unexplained = 1 - replay.fidelity()
    if unexplained > FAITHFUL:
        return Unseen(missing, None, unexplained)
    left_out = sorted(set(missing) - {one.rank for one in replay.played.ranks})
    suspect = max(judged.others, default=None, key=lambda fault: fault.candidate.excess)
    if not left_out or suspect is None:
        return None
    return Unseen(left_out, rank_of(replay, suspect.candidate.rank), suspect.candidate.excess)


def _has_too_few(replay: Replay) -> bool:
    return len(replay.matched.iterations) < FEWEST


def _report(agreed: Agreed, left_out: list[Untold], missing: list[int]) -> Judgement:
    replay, table, judged = agreed.search.replay, agreed.search.table, agreed.judged
    matched, fidelity = replay.matched, replay.fidelity()
    decision = _decide(agreed, missing)
    if decision.named and decision.gain < HALF * abs(fidelity - 1) and abs(fidelity - 1) > FAITHFUL:
        decision = _Decision(verdict="undecided", reason=Unfaithful(fidelity))
    verdict, links, power = decision.verdict, decision.links, decision.power
    order = [*judged.named, *judged.others] if _has_too_few(replay) else judged.others
    section = Stragglers(
        verdict=verdict,
        ranks=decision.named,
        cause=decision.moving,
        order=[describe_fault(replay, table, fault) for fault in order][:_MOST_SHOWN],
        candidate=power.candidate if verdict == "undecided" else None,
        smallest_gain=power.smallest_gain if verdict in _OF_NO_RANK else None,
        lasting_gain=power.lasting_gain if verdict in _OF_NO_RANK else None,
        low_floor_iterations=power.low_floor_iterations if verdict in _OF_NO_RANK else None,
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
        approximate=abs(fidelity - 1) > FAITHFUL
        or ((agreed.by_gaps_alone or decision.by_gaps or bool(missing)) and verdict not in _OF_NO_RANK),
        fidelity=fidelity,
        transfer_share=_transfer_share(replay),
        pipeline=None if abs(fidelity - 1) > FAITHFUL else measure_bubbles(replay, table.role),
        iterations=matched.iterations,
        matched_by=matched.method,
        operations=matched.operations,
        unmatched=matched.unmatched,
        not_captured=missing,
        clocks=_clocks(matched),
    )
    untold = find_untold(table, matched, left_out, missing, links_judged=links.judged)
    is_of_all = not decision.named and not section.approximate and not table.on_host
    return Judgement(section, decision.reason, untold, measure_loading_gain(replay) if is_of_all else 0.0)


def _transfer_share(replay: Replay) -> float | None:
    """The part of the ranks' time in collectives that is transfer: the shortest duration of each one."""
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
    """The candidates that noise leaves open; a rank whose own time costs nothing in the replay is no candidate."""
    cleared = {fault.candidate.rank for fault in judged.others}
    count = max(len(replay.matched.iterations), 1)
    iteration_ns = float(replay.run([replay.as_measured()]).total_ns[0]) / count
    least_gain = least_joint_gain(replay)
    found = find_power(table, iteration_ns, least_gain, cleared)

    def confirm(suspect: Undecided | None) -> Undecided | None:
        if suspect is None:
            return None
        whole = Candidate(suspect.rank, LatePattern.PERSISTENT, suspect.gain, np.ones(count, np.bool_))
        if judge(replay, table, [whole]).joint_gain < least_gain:
            return None
        return msgspec.structs.replace(suspect, rank=rank_of(replay, suspect.rank))

    return replace(found, candidate=confirm(found.candidate), hidden=confirm(found.hidden))
