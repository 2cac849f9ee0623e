"""The line of code in which a late rank is while its peers are further (docs/measures.md#stragglers).

Guarantees: pure; None where the rank or its peers were not sampled, or the samples do not tell.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.search.faults import Fault
from fleetprof_analyzer.rank.host.by_iteration import find_late_place

ON_HOST: Final = frozenset(("host", "cpu_contention", "garbage_collection", "data_loading"))
"""Causes that lie in what the training thread does."""
_MOST_PEERS: Final = 64


def find_place(replay: Replay, table: OwnTime, fault: Fault) -> PlaceInCode | None:
    """The line of the candidate in its late iterations, beyond its peers; beyond all other ranks where it has none."""
    rank, late = fault.candidate.rank, np.flatnonzero(fault.candidate.iterations)
    peers = table.peers(rank)
    others = peers if len(peers) else np.delete(np.arange(len(replay.matched.ranks)), rank)
    chosen = [rank, *others[:_MOST_PEERS].tolist()]
    times = [replay.matched.ranks[one].thread for one in chosen]
    own = table.own_ns[:, late].astype(np.float64)
    longer = own[rank] - np.median(own[chosen[1:]], axis=0)
    return find_late_place(
        times[0], times[1:], [positions_of(replay, one, set(late.tolist())) for one in chosen], float(longer.mean())
    )


def positions_of(replay: Replay, rank: int, wanted: set[int]) -> list[int]:
    """The positions in the rank's own list of iterations that all ranks have, of those that are wanted."""
    own, common = replay.matched.ranks[rank].columns.iteration, replay.matched.iteration[rank]
    known = (own >= 0) & (common >= 0)
    pairs = {*zip(own[known].tolist(), common[known].tolist(), strict=True)}
    return sorted({position for position, at in pairs if at in wanted})
