"""A rank that is named, as the report shows it: late by itself, on a slow link, or of a heavy stage.

Guarantees: pure. Ranks are positions here, and numbers in what is returned.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.stragglers import Evidence, Straggler

from fleetprof_analyzer.job.stragglers.causes.explanation import (
    explain,
    explain_device,
    explain_loader,
    explain_work,
)
from fleetprof_analyzer.job.stragglers.imbalance import Imbalance
from fleetprof_analyzer.job.stragglers.lateness.candidate import FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.network import Links
from fleetprof_analyzer.job.stragglers.place import ON_HOST, find_place
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.search.faults import Fault
from fleetprof_analyzer.rank.communication.operations import KINDS

_MOST_NAMED: Final = 8


def describe_fault(replay: Replay, table: OwnTime, fault: Fault) -> Straggler:
    """A rank that is late by itself, with its cause and where that lies."""
    rank = fault.candidate.rank
    on_gpu = replay.matched.ranks[rank].kind == "gpu"
    if fault.candidate.by == FoundBy.KERNELS:
        found = explain_device(table, fault.candidate)
    elif fault.candidate.by == FoundBy.LOADER:
        found = explain_loader(table, fault.candidate)
    elif fault.candidate.by == FoundBy.WORK:
        found = explain_work(table, fault.candidate)
    else:
        found = explain(table, fault.candidate, on_gpu=on_gpu, indices=replay.matched.iterations)
    return Straggler(
        rank=rank_of(replay, rank),
        lateness_ns=fault.lateness_ns,
        cause=found.cause,
        place=find_place(replay, table, fault) if found.cause in ON_HOST else None,
        evidence=found.evidence,
        gain=max(fault.gain, 0.0),
        gain_alone=max(fault.gain_alone, 0.0),
        pattern="persistent" if fault.candidate.pattern == LatePattern.PERSISTENT else "intermittent",
        every=found.every,
        peers=fault.peers,
    )


def describe_link(replay: Replay, links: Links, rank: int) -> Straggler:
    """A rank where slow links meet."""
    mine = [group for group in links.slow if rank in group.members]
    evidence = [
        Evidence(
            measure=f"{KINDS[group.kind]} with ranks {_some([rank_of(replay, m) for m in group.members if m != rank])}",
            value=group.transfer_ns, usual=group.sisters_ns, unit="ns per transfer",
        )
        for group in mine[:8]
    ]  # fmt: skip
    return Straggler(
        rank=rank_of(replay, rank), lateness_ns=links.lateness_ns, cause="network", evidence=evidence, gain=links.gain,
        gain_alone=links.gain,
    )  # fmt: skip


def describe_stage(replay: Replay, imbalance: Imbalance, rank: int) -> Straggler:
    """A rank of a stage that takes longer than the others."""
    evidence = Evidence(
        measure="own time over the mean of the other stages", value=round(100 * (1 + imbalance.excess), 1), usual=100,
        unit="%",
    )  # fmt: skip
    return Straggler(
        rank=rank_of(replay, rank), lateness_ns=imbalance.lateness_ns, cause=imbalance.cause, evidence=[evidence],
        gain=imbalance.stage_gain, gain_alone=imbalance.stage_gain, peers=len(imbalance.heaviest) - 1,
    )  # fmt: skip


def rank_of(replay: Replay, position: int) -> int:
    """The rank's number; a replay knows ranks by their positions."""
    rank = replay.matched.ranks[position].rank
    assert rank is not None
    return rank


def _some(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_MOST_NAMED]))
    return f"{shown} and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else shown
