"""Decides who holds the job up, from the operations of all ranks.

In this order: ranks that are late against their peers; slow links; a stage that is too heavy; work that moves;
nobody. Formulas: docs/measures.md#stragglers. Guarantees: pure; no verdict rests on a difference of two clocks; what
the traces cannot tell is said instead of guessed.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final, Literal

import msgspec
import numpy as np
from fleetprof_api.report.stragglers import (
    Cause,
    ClockAlignment,
    Evidence,
    SlowLink,
    Straggler,
    Stragglers,
    Undecided,
)

from fleetprof_analyzer.job.stragglers.causes.explanation import (
    explain,
    explain_device,
    explain_loader,
    explain_operators,
    explain_work,
)
from fleetprof_analyzer.job.stragglers.causes.loaders import can_compare_loaders, find_slow_loaders
from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic
from fleetprof_analyzer.job.stragglers.causes.unequal_work import weigh_work
from fleetprof_analyzer.job.stragglers.faults import Fault, Judged, judge, least_joint_gain
from fleetprof_analyzer.job.stragglers.imbalance import Imbalance, find_imbalance
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate, find_candidates
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime, tabulate
from fleetprof_analyzer.job.stragglers.missing import find_missing
from fleetprof_analyzer.job.stragglers.network import Links, find_slow_links
from fleetprof_analyzer.job.stragglers.place import ON_HOST, find_place
from fleetprof_analyzer.job.stragglers.reasons import (
    NOBODY,
    name_ranks,
    say_heavy_stage,
    say_slow_link,
    say_straggler,
    say_too_few,
    say_undecided,
    some,
)
from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks, ends_together
from fleetprof_analyzer.job.stragglers.replay.matching import Matched, match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_roles
from fleetprof_analyzer.job.stragglers.replay.schedule import Circular
from fleetprof_analyzer.job.stragglers.same_kernels import find_slow_devices
from fleetprof_analyzer.job.stragglers.undecided import Power, find_power
from fleetprof_analyzer.rank.communication.operations import (
    KINDS,
    MOST_OPERATIONS,
    RankOperations,
    UnreadableOperations,
    decode,
)

log = logging.getLogger(__name__)

_LEAST_ITERATIONS: Final = 3
_FAITHFUL: Final = 0.03
_LEAST_OF_TYPICAL: Final = 0.5
_MOST_SHOWN: Final = 16
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
    ranks, left_out = _usable(operations)
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
    return _decide(replay, table, judged, left_out, missing)


def _decide(replay: Replay, table: OwnTime, judged: Judged, left_out: list[str], missing: list[int]) -> Stragglers:
    matched = replay.matched
    fidelity = replay.fidelity()
    unidentifiable = list(left_out)
    if missing:
        unidentifiable.append(
            f"{_capital(name_ranks(missing))} left no trace: lateness that comes from there shows as a slow group, or "
            "not at all"
        )
    if matched.unmatched:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(matched.unmatched_kinds.items()))
        unidentifiable.append(
            f"For {matched.unmatched:,} of {matched.operations:,} operations ({kinds}) the traces do not say "
            "who took part"
        )
    verdict: Literal["straggler", "heavy_stage", "slow_link", "moving_imbalance", "nobody", "undecided"] = "nobody"
    reason, named, links, gain = "", [], Links([], [], 0.0, 0, judged=True), 0.0
    moving: Cause | None = None
    power = Power(None, None)
    if len(matched.iterations) < _LEAST_ITERATIONS:
        verdict, reason = "undecided", say_too_few(len(matched.iterations), _LEAST_ITERATIONS)
        order = [*judged.named, *judged.others]
    elif judged.named:
        verdict, gain, order = "straggler", judged.joint_gain, judged.others
        named = [_straggler(replay, table, fault) for fault in judged.named]
        reason = say_straggler(named)
    else:
        order = judged.others
        links = find_slow_links(replay, table.role)
        imbalance = find_imbalance(replay, table)
        power = _power(replay, table, judged)
        if links.slow:
            verdict, gain = "slow_link", links.gain
            named = [_of_link(replay, links, rank) for rank in links.ranks]
            reason = say_slow_link(
                links,
                [_rank(replay, member) for member in links.slow[0].members],
                [_rank(replay, rank) for rank in links.ranks],
            )
        elif imbalance.heaviest:
            verdict, gain = "heavy_stage", imbalance.stage_gain
            named = [_of_stage(replay, imbalance, rank) for rank in imbalance.heaviest]
            reason = say_heavy_stage([one.rank for one in named], imbalance.excess)
        elif power.candidate is not None:
            verdict, reason = "undecided", say_undecided(power.candidate)
        elif imbalance.moves:
            verdict, gain, moving = "moving_imbalance", imbalance.moving_gain, imbalance.moves
            reason = _MOVING[imbalance.moves]
        elif power.hidden is not None:
            verdict, reason = "undecided", say_undecided(power.hidden)
            power = Power(power.hidden, power.smallest_gain)
        else:
            reason = NOBODY
        if not links.judged:
            unidentifiable.append(
                "A slow link would not show: every process group is the only one of its kind, so there is nothing to "
                "compare its transfers with"
            )
    if any(one.cut for one in matched.ranks):
        unidentifiable.append(f"Only the first {MOST_OPERATIONS:,} collectives of a rank were compared")
    unidentifiable += _unmeasured(table, matched)
    return Stragglers(
        verdict=verdict,
        reason=reason,
        ranks=named,
        cause=moving,
        order=[_straggler(replay, table, fault) for fault in order][:_MOST_SHOWN],
        candidate=power.candidate if verdict == "undecided" else None,
        smallest_gain=power.smallest_gain if verdict in ("nobody", "undecided", "moving_imbalance") else None,
        slow_links=[
            SlowLink(
                ranks=[_rank(replay, member) for member in group.members],
                collective=KINDS[group.kind],
                factor=group.factor,
                operations=group.operations,
                transfer_ns=group.transfer_ns,
                usual_ns=group.sisters_ns,
            )
            for group in links.slow[:_MOST_SHOWN]
        ],
        gain=max(gain, 0.0),
        approximate=abs(fidelity - 1) > _FAITHFUL,
        fidelity=fidelity,
        transfer_share=_transfer_share(replay),
        iterations=matched.iterations,
        matched_by=matched.method,
        operations=matched.operations,
        unmatched=matched.unmatched,
        not_captured=missing,
        clocks=_clocks(matched),
        unidentifiable=unidentifiable,
    )


def _usable(operations: Sequence[RankOperations]) -> tuple[list[RankOperations], list[str]]:
    """(the ranks that can be compared, what must be said about the others): one bad trace spoils no verdict."""
    count = Counter(one.rank for one in operations)
    distinct = [one for one in operations if one.rank is not None and count[one.rank] == 1]
    said = []
    if len(distinct) < len(operations):
        left = len(operations) - len(distinct)
        said.append(f"{left} traces were left out: they do not say which rank they are, or claim the same one")
    typical = median(len(one.iterations) for one in distinct) if distinct else 0
    ranks = [one for one in distinct if len(one.iterations) >= max(_LEAST_OF_TYPICAL * typical, 1)]
    short = [one.rank for one in distinct if one not in ranks and one.rank is not None]
    if short and typical:
        said.append(f"{_capital(name_ranks(short))} {_was(short)} left out: too few of the iterations are in the trace")
        return ranks, said
    return distinct, said


def _straggler(replay: Replay, table: OwnTime, fault: Fault) -> Straggler:
    rank = fault.candidate.rank
    on_gpu = replay.matched.ranks[rank].kind == "gpu"
    if fault.candidate.by == "kernels":
        found = explain_device(table, fault.candidate)
    elif fault.candidate.by == "loader":
        found = explain_loader(table, fault.candidate)
    elif fault.candidate.by == "work":
        found = explain_work(table, fault.candidate)
    elif fault.candidate.by == "operators":
        found = explain_operators(table, fault.candidate)
    else:
        found = explain(table, fault.candidate, on_gpu=on_gpu, indices=replay.matched.iterations)
    return Straggler(
        rank=_rank(replay, rank),
        lateness_ns=fault.lateness_ns,
        cause=found.cause,
        place=find_place(replay, table, fault) if found.cause in ON_HOST else None,
        evidence=found.evidence,
        gain=max(fault.gain, 0.0),
        gain_alone=max(fault.gain_alone, 0.0),
        pattern="persistent" if fault.candidate.pattern == "persistent" else "intermittent",
        every=found.every,
        peers=fault.peers,
    )


def _transfer_share(replay: Replay) -> float | None:
    """What of the ranks' time in collectives is transfer: the shortest duration of each one."""
    inside = replay.iteration >= 0
    total = int(replay.duration_ns[inside].sum())
    return float(replay.transfer_ns[replay.layout.collective[inside]].sum() / total) if total else None


def _of_link(replay: Replay, links: Links, rank: int) -> Straggler:
    mine = [group for group in links.slow if rank in group.members]
    evidence = [
        Evidence(
            measure=f"{KINDS[group.kind]} with ranks {some([_rank(replay, m) for m in group.members if m != rank])}",
            value=group.transfer_ns, usual=group.sisters_ns, unit="ns per transfer",
        )
        for group in mine[:8]
    ]  # fmt: skip
    return Straggler(
        rank=_rank(replay, rank), lateness_ns=links.lateness_ns, cause="network", evidence=evidence, gain=links.gain,
        gain_alone=links.gain,
    )  # fmt: skip


def _of_stage(replay: Replay, imbalance: Imbalance, rank: int) -> Straggler:
    evidence = Evidence(
        measure="own time over the mean of the other stages", value=round(100 * (1 + imbalance.excess), 1), usual=100,
        unit="%",
    )  # fmt: skip
    return Straggler(
        rank=_rank(replay, rank), lateness_ns=imbalance.lateness_ns, cause="stage_imbalance", evidence=[evidence],
        gain=imbalance.stage_gain, gain_alone=imbalance.stage_gain, peers=len(imbalance.heaviest) - 1,
    )  # fmt: skip


def _unmeasured(table: OwnTime, matched: Matched) -> list[str]:
    said = []
    alone = [one.rank for number, one in enumerate(matched.ranks) if len(table.peers(number)) == 0]
    if alone:
        what = "a slow host" if can_compare_loaders(table) else "a slow host or data loader"
        said.append(
            f"{_capital(what)} on {name_ranks([rank for rank in alone if rank is not None])} would not show: "
            "no other rank does the same work"
        )
    if all(one.kind == "gpu" for one in matched.ranks) and not np.isfinite(table.clock_megahertz).any():
        said.append("A GPU whose clock is throttled all the time would show as a slow GPU: clocks were not sampled")
    return said


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _was(ranks: Sequence[int]) -> str:
    return "was" if len(ranks) == 1 else "were"


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
        return msgspec.structs.replace(suspect, rank=_rank(replay, suspect.rank))

    return Power(confirm(found.candidate), found.smallest_gain, confirm(found.hidden))


def _rank(replay: Replay, position: int) -> int:
    rank = replay.matched.ranks[position].rank
    assert rank is not None
    return rank
