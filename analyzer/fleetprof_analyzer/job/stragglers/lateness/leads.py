"""Tells whether a device has gaps because its host is late, or because chance used up the host's lead.

A host that launches ahead of its device keeps its lead from one iteration to the next, so the gaps of a device whose
host has none come together, and many of them are not as many signs. The host's own time has no memory: it must be
longer than the peers' by more than noise explains. Formulas: docs/measures.md#stragglers. Guarantees: pure; the noise
is that of the other ranks, so that what a fault does to its rank does not hide it.
"""

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import HALF, SIGMA, VERY_RARE
from fleetprof_analyzer.job.student import student_quantile
from fleetprof_analyzer.trace.trace import Bools, Int64s


def may_be_chance_of_leads(table: OwnTime, rank: int, late: Bools) -> bool:
    """Tells if gaps make the rank late in these iterations, shape (K,), while its host takes as long as the others.

    Work of the device is no gap, and a host in which nothing at all happens for so long has paused.
    """
    if not table.host_ns[rank].any() or len(late) < 2:
        return False
    own = _beyond(table, table.own_ns, rank)[late].mean()
    for values in (table.parts_ns["busy"], table.parts_ns["collection"], table.quiet_ns):
        if _beyond(table, values, rank)[late].mean() > HALF * own:
            return False
    return bool(_beyond(table, table.host_ns, rank).mean() <= _reach_ns(table, rank))


def _beyond(table: OwnTime, values: Int64s, rank: int) -> Floats:
    """Beyond the median of the peers, without any beyond that of all iterations, shape (K,)."""
    peers = table.peers(rank)
    reference = np.median(values[peers], axis=0) if len(peers) else np.median(values[rank])
    return np.asarray(values[rank] - reference)


def _reach_ns(table: OwnTime, rank: int) -> float:
    """The distance by which noise takes the mean of a host's own time from its peers', for all ranks together."""
    others = np.delete(table.host_ns, rank, axis=0)
    deviation = SIGMA * np.median(np.abs(others - np.median(others, axis=1)[:, None]), axis=1)
    pooled = float(np.sqrt(np.mean(np.minimum(deviation, 3 * np.median(deviation)) ** 2)))
    of_both, count = 1 + 1 / max(len(table.peers(rank)), 1), others.shape[1]
    error = pooled * float(np.sqrt(of_both / count))
    return student_quantile(VERY_RARE / len(table.own_ns), count - 1) * error
