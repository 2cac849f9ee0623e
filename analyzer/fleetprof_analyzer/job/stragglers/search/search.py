"""Searches for late ranks in one replay, and says how much of a lateness rests on what a trace knows for certain.

Guarantees: pure.
"""

from dataclasses import dataclass

import numpy as np

from fleetprof_analyzer.job.stragglers.causes.loaders import find_slow_loaders
from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic
from fleetprof_analyzer.job.stragglers.causes.unequal_work import weigh_work
from fleetprof_analyzer.job.stragglers.lateness.excess import Candidate, find_candidates
from fleetprof_analyzer.job.stragglers.lateness.late_hosts import find_late_hosts
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime, tabulate
from fleetprof_analyzer.job.stragglers.lateness.sign_test import find_most_often
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_roles
from fleetprof_analyzer.job.stragglers.search.faults import Fault, Judged, judge
from fleetprof_analyzer.job.stragglers.search.same_kernels import find_slow_devices
from fleetprof_analyzer.trace.trace import Int64s


@dataclass(frozen=True, slots=True)
class Search:
    """A replay with the own times of its ranks, and who of them is late; `extra` as `judge` takes it."""

    replay: Replay
    table: OwnTime
    extra: dict[int, tuple[Int64s, Int64s]]
    judged: Judged

    def keep(self, faults: list[Fault]) -> Judged:
        """The judgement over these alone."""
        if len(faults) == len(self.judged.named):
            return self.judged
        found = judge(self.replay, self.table, [fault.candidate for fault in faults], self.extra)
        kept = {fault.candidate.rank for fault in faults}
        rest = [fault for fault in (*self.judged.named, *self.judged.others) if fault.candidate.rank not in kept]
        return Judged(found.named, [*found.others, *rest], found.joint_gain)

    def certain_share(self, candidate: Candidate) -> float:
        """What of a rank's excess its device worked, its loader loaded or the collector ran, 0 to 1.

        Of these a trace says for certain when they ran; a gap may be the rank's own, or its wait for others.
        """
        rank, peers = candidate.rank, self.table.peers(candidate.rank)
        if not len(peers):
            return 1.0

        def excess(values: Int64s) -> float:
            beyond = values[rank] - np.median(values[peers], axis=0)
            return max(float(beyond[candidate.iterations].sum()), 0.0)

        parts, hosts = self.table.parts_ns, self.table.host_parts_ns
        certain = excess(parts["busy"]) + sum(
            excess(np.maximum(parts[name], hosts[name])) for name in ("data", "collection")
        )
        return min(certain / max(excess(self.table.own_ns), 1.0), 1.0)

    def unsure_shares(self) -> Floats:
        """In how much of the window each rank's host may have waited, which counts as its own time, shape (R,)."""
        window_ns = float(self.replay.run([self.replay.as_measured()]).total_ns[0])
        return np.array([one.unsure_ns for one in self.replay.matched.ranks]) / max(window_ns, 1.0)


def search(replay: Replay) -> Search:
    """Tests the own times of all ranks, and replays those that may be late."""
    matched = replay.matched
    role = find_roles(replay.played, replay.strays)[: len(matched.ranks)]
    of_hosts = find_late_hosts(tabulate(replay, role), matched.hosts)
    table, known = of_hosts.table, {candidate.rank for candidate in of_hosts.candidates}
    singly = [candidate for candidate in find_candidates(table) if candidate.rank not in known]
    candidates = of_hosts.candidates + add_rhythmic(table, singly, matched.iterations)
    known = {candidate.rank for candidate in candidates}
    candidates += [candidate for candidate in find_most_often(table) if candidate.rank not in known]
    # Of ranks without peers what goes on all the time is told by what all ranks have in common.
    slow_loaders, extra = find_slow_loaders(replay, table)
    candidates = slow_loaders + [candidate for candidate in candidates if candidate.rank not in extra]
    slow_devices, times = find_slow_devices(replay, table)
    known = {candidate.rank for candidate in candidates}
    candidates += [candidate for candidate in slow_devices if candidate.rank not in known]
    candidates = weigh_work(table, candidates, on_host=all(one.kind == "cpu" for one in matched.ranks))
    extra |= {rank: both for rank, both in times.items() if rank not in known}
    return Search(replay, table, extra, judge(replay, table, candidates, extra))
