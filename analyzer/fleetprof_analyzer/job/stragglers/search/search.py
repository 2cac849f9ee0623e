"""Searches for late ranks in one replay, and says how much of a lateness rests on what a trace knows for certain.

Guarantees: pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

import numpy as np

from fleetprof_analyzer.job.stragglers.causes import loaders
from fleetprof_analyzer.job.stragglers.causes.unequal_work import weigh_work
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.late_hosts import find_late_hosts
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime, tabulate
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_roles
from fleetprof_analyzer.job.stragglers.search import beside_peers, same_kernels
from fleetprof_analyzer.job.stragglers.search.faults import Fault, Judged, judge
from fleetprof_analyzer.trace.trace import Int64s


class Detector(Protocol):
    """A module that finds ranks which may be late, with its thresholds."""

    def find_candidates(self, _replay: Replay, table: OwnTime, /) -> list[Candidate]:
        """Each rank once."""


DETECTORS: Final[tuple[Detector, ...]] = (loaders, beside_peers, same_kernels)
"""In this order; late hosts come before them, because their ranks are nobody's peers."""


@dataclass(frozen=True, slots=True)
class Search:
    """A replay with the own times of its ranks, and who of them is late."""

    replay: Replay
    table: OwnTime
    judged: Judged

    def keep(self, faults: list[Fault]) -> Judged:
        """The judgement over these alone."""
        if len(faults) == len(self.judged.named):
            return self.judged
        found = judge(self.replay, self.table, [fault.candidate for fault in faults])
        kept = {fault.candidate.rank for fault in faults}
        rest = [fault for fault in (*self.judged.named, *self.judged.others) if fault.candidate.rank not in kept]
        return Judged(found.named, [*found.others, *rest], found.joint_gain)

    def certain_share(self, candidate: Candidate, following: OwnTime | None = None) -> float:
        """The part of a rank's excess that its device worked, its loader loaded or the collector ran, 0 to 1.

        Of these a trace says for certain when they ran; a gap may be the rank's own, or its wait for others. By
        `following` hosts, where that is known: who has no lead has loading in its gaps that others have as well.
        """
        rank, peers = candidate.rank, self.table.peers(candidate.rank)
        if not len(peers):
            return 1.0

        def excess(values: Int64s) -> float:
            beyond = values[rank] - np.median(values[peers], axis=0)
            return max(float(beyond[candidate.iterations].sum()), 0.0)

        parts, hosts = self.table.parts_ns, self.table.host_parts_ns
        spent = {name: np.maximum(parts[name], hosts[name]) for name in ("data", "collection")}
        if following is not None and following.host_ns[rank].any():
            spent = {name: following.host_parts_ns[name] for name in spent}
        certain = excess(parts["busy"]) + sum(excess(values) for values in spent.values())
        return min(certain / max(excess(self.table.own_ns), 1.0), 1.0)

    def unsure_shares(self) -> Floats:
        """In how much of the window each rank's host may have waited, which counts as its own time, shape (R,)."""
        window_ns = float(self.replay.run([self.replay.as_measured()]).total_ns[0])
        return np.array([one.unsure_ns for one in self.replay.matched.ranks]) / max(window_ns, 1.0)


def search(replay: Replay) -> Search:
    """Tests the own times of all ranks, and replays those that may be late."""
    role = find_roles(replay.played, replay.strays)[: len(replay.matched.ranks)]
    of_hosts = find_late_hosts(tabulate(replay, role), replay.matched.hosts)
    table = of_hosts.table
    found = join_candidates([of_hosts.candidates, *(one.find_candidates(replay, table) for one in DETECTORS)])
    return Search(replay, table, judge(replay, table, weigh_work(table, found)))


def join_candidates(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Each rank once, as the first detector has it."""
    joined: dict[int, Candidate] = {}
    for candidate in chain.from_iterable(found):
        joined.setdefault(candidate.rank, candidate)
    return list(joined.values())
