"""Judges late ranks under both readings of the hosts: that their waits are all known, and that a gap is the rank's own.

A host whose waits are not all known seems busy for as long as it waits, so that all hosts look equally slow; where a
gap counts as own time, a host that lost its lead by waiting for others looks late. So a lateness that is mostly gaps
counts where both readings have it, and is disputed where one has. Guarantees: pure.
"""

from dataclasses import dataclass, replace

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.lateness.reference import shrink_to_peers
from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.search.faults import Fault, Judged, judge
from fleetprof_analyzer.job.stragglers.search.search import Search, search
from fleetprof_analyzer.job.stragglers.thresholds import FAITHFUL, HALF, LEAST_BESIDE_NOISE, LEAST_PAUSE, MOST


@dataclass(frozen=True, slots=True)
class Agreed:
    """The reading that the verdict rests on, who is late by it, and of whom the readings say different things."""

    search: Search
    judged: Judged
    disputed: Fault | None = None
    other: Search | None = None  # the other reading, where hosts may have waited unseen and nobody is late by both
    by_gaps_alone: bool = False  # no host of a device was recorded


def read_hosts(matched: Matched) -> Agreed:
    """Raises Circular."""
    following = Replay(matched)
    if not following.has_host.any():
        found = search(following)
        on_device = any(one.kind == "gpu" for one in matched.ranks)
        return _read_gaps_alone(found) if on_device else Agreed(found, found.judged)
    gaps = None
    if (off := abs(following.fidelity() - 1)) > FAITHFUL:
        gaps = Replay(matched, follows_hosts=False)
        if abs(gaps.fidelity() - 1) < off:
            found = search(gaps)
            return Agreed(found, found.judged)
    hosts = search(following)
    unsure = hosts.unsure_shares()
    doubted = [
        fault for fault in hosts.judged.named
        if unsure[fault.candidate.rank] >= LEAST_PAUSE and not _is_certain(hosts, fault)
    ]  # fmt: skip
    if (hosts.judged.named and not doubted) or float(unsure.max()) < LEAST_PAUSE:
        return Agreed(hosts, hosts.judged)
    return _agree(hosts, search(gaps or Replay(matched, follows_hosts=False)), unsure)


def _agree(hosts: Search, gaps: Search, unsure: Floats) -> Agreed:
    by_gaps, by_hosts = ({fault.candidate.rank for fault in one.judged.named} for one in (gaps, hosts))
    if by_gaps and by_gaps <= by_hosts and all(hosts.table.late_with_host[rank] >= 0 for rank in by_hosts):
        # Late ranks of one machine lose their leads to each other, and gaps show few of them: the host is the same.
        return Agreed(hosts, hosts.judged)
    sure = [fault for fault in hosts.judged.named if fault.candidate.rank in by_gaps or _is_certain(hosts, fault)]
    # A host that seems late for as long as it may have waited shows that waits were missed, perhaps on other ranks too.
    misses = any(unsure[fault.candidate.rank] >= LEAST_PAUSE for fault in hosts.judged.named if fault not in sure)
    if hosts.judged.named and not misses:
        return Agreed(hosts, hosts.judged)
    opposed = [
        fault for fault in gaps.judged.named
        if fault.candidate.rank in by_hosts or _waits_are_missed(hosts, unsure, fault)
    ]  # fmt: skip
    agreed = [fault for fault in opposed if fault.candidate.rank in by_hosts or _is_certain(gaps, fault, hosts.table)]
    if agreed:
        return Agreed(gaps, gaps.keep(agreed))
    if sure:
        return Agreed(hosts, hosts.keep(sure))
    disputed = next(iter([*opposed, *hosts.judged.named]), None)
    return Agreed(hosts, _nobody(hosts.judged), disputed, gaps)


def _read_gaps_alone(gaps: Search) -> Agreed:
    """The one reading where no launch was recorded: a lateness by gaps may be a lead that was lost by waiting."""
    gaps = _judge_denied_again(gaps)
    named = gaps.judged.named
    kept = [fault for fault in named if _is_certain(gaps, fault) or _has_gaps_alone(gaps, fault)]
    if named and not kept:
        return Agreed(gaps, _nobody(gaps.judged), named[0], by_gaps_alone=True)
    return Agreed(gaps, gaps.keep(kept), by_gaps_alone=True)


def _judge_denied_again(gaps: Search) -> Search:
    """The search, after a replay that grew longer as a device worked less: it has work on the wrong side of a wait.

    Without launches nothing says what comes before an operation beside the device's work. Then the rank's work shrinks
    where it exceeds the peers', and grows nowhere.
    """
    replay, table = gaps.replay, gaps.table
    tested = [*gaps.judged.named, *gaps.judged.others]
    denied = [fault for fault in tested if fault.gain_alone < 0 and _is_certain(gaps, fault)]
    if not denied:
        return gaps
    shrinking = {fault.candidate.rank for fault in denied}

    def mend(candidate: Candidate) -> Candidate:
        if candidate.rank not in shrinking or not len(table.peers(candidate.rank)):
            return candidate
        return replace(candidate, mended_ns=(shrink_to_peers(replay, table, candidate.rank), replay.host_ns))

    return replace(gaps, judged=judge(replay, table, [mend(fault.candidate) for fault in tested]))


def _has_gaps_alone(gaps: Search, fault: Fault) -> bool:
    """Tells whether the rank's gaps cost enough, and none of its peers ever had most of them.

    Where no host is late, the lead passes from one to another, and each has such gaps while it has none.
    """
    if fault.gain_alone < LEAST_BESIDE_NOISE:
        return False
    table, rank = gaps.table, fault.candidate.rank
    peers = table.peers(rank)
    gaps_ns = table.own_ns - table.parts_ns["busy"]
    usual_ns = float(np.median(gaps_ns[rank][fault.candidate.iterations]))
    return not len(peers) or float(gaps_ns[peers].max()) < MOST * usual_ns


def _nobody(judged: Judged) -> Judged:
    return Judged([], [*judged.named, *judged.others], judged.joint_gain)


def _waits_are_missed(hosts: Search, unsure: Floats, fault: Fault) -> bool:
    """Tells whether hosts that would wait for the rank may have waited unseen for much of its cost.

    A quarter of them tells: others have leads, or wait where their waits are known.
    """
    peers = hosts.table.peers(fault.candidate.rank)
    missed = float(np.quantile(unsure[peers], MOST)) if len(peers) else float(unsure.max())
    return missed >= HALF * fault.gain_alone


def _is_certain(found: Search, fault: Fault, following: OwnTime | None = None) -> bool:
    return found.certain_share(fault.candidate, following) >= HALF
