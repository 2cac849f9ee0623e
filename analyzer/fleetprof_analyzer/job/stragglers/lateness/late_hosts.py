"""Finds hosts nearly all of whose ranks are late: so many late ranks hide each other among their peers.

Only ranks of one role are compared, those of a host with those of the others. Guarantees: pure; the same table gives
the same hosts; where the host of any rank is not known, or all are on one, none is late.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import (
    USUAL_SPREAD,
    least_z,
    measures_of,
    spread_of_many,
)
from fleetprof_analyzer.job.stragglers.lateness.margins import stand_out
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import LEAST, MOST, SEVERAL
from fleetprof_analyzer.trace.trace import Bools, Int64s

_MOST_LATE: Final = 4  # hosts, whose ranks are replayed one by one


@dataclass(frozen=True, slots=True)
class LateHosts:
    """The ranks that are late with their host, and the table in which they are nobody's peers."""

    table: OwnTime
    candidates: list[Candidate]


def find_late_hosts(table: OwnTime, hosts: Sequence[str]) -> LateHosts:
    """Tests own time, its parts and the hosts' own time, as for single ranks; `hosts` has one name per rank."""
    if len(set(hosts)) < 2 or not all(hosts):
        return LateHosts(table, [])
    host = np.unique(np.array(hosts), return_inverse=True)[1]
    found: dict[int, Candidate] = {}
    for values in measures_of(table):
        excess = _excess(table, host, values)
        for rank in _find_late(excess, host):
            middle = float(np.median(excess[rank]))
            late = excess[rank] > max(LEAST, middle / 2)
            found.setdefault(rank, Candidate(rank, LatePattern.PERSISTENT, middle, late))
    late_ranks = np.full(len(host), -1)
    late_ranks[list(found)] = host[list(found)]
    ranks = sorted(found, key=lambda rank: -found[rank].excess)
    return LateHosts(replace(table, late_with_host=late_ranks), [found[rank] for rank in ranks])


def _excess(table: OwnTime, host: Int64s, values: Int64s) -> Floats:
    """Values over the middle of the hosts, as share of the role's own time, shape (R, K); nan in a role of one host."""
    excess = np.full(values.shape, np.nan)
    for role in np.unique(table.role):
        mine = table.role == role
        here = np.unique(host[mine])
        if len(here) < 2:
            continue
        level = max(float(np.median(table.own_ns[mine])), 1.0)
        middles = np.array([np.median(values[mine & (host == one)], axis=0) for one in here])
        excess[mine] = (values[mine] - np.quantile(middles, 0.5, axis=0, method="lower")) / level
    return excess


def _find_late(excess: Floats, host: Int64s) -> list[int]:
    """The late ranks of the latest hosts: of as many as are all late beside the rest, at most half of them."""
    known = np.isfinite(excess).all(axis=1)
    middle = np.where(known, np.median(excess, axis=1), np.nan)
    of_host = {int(one): float(np.median(middle[known & (host == one)])) for one in np.unique(host[known])}
    order = sorted(of_host, key=lambda one: -of_host[one])
    for count in range(min(len(order) // 2, _MOST_LATE), 0, -1):
        others = known & np.isin(host, order[count:])
        late = [_late_of(excess, middle, known & (host == one), others) for one in order[:count]]
        if all(late):
            return [rank for ranks in late for rank in ranks]
    return []


def _late_of(excess: Floats, middle: Floats, mine: Bools, others: Bools) -> list[int]:
    """The late ranks of one host, if they are nearly all of its ranks."""
    usual = float(np.median(middle[others]))
    spread = max(spread_of_many(middle[others]), USUAL_SPREAD)
    least = usual + max(LEAST, least_z(int(others.sum())) * spread)
    late = [int(rank) for rank in np.flatnonzero(mine) if _is_late(excess[rank], usual, least)]
    beyond = np.median(excess[mine], axis=0) - np.median(excess[others], axis=0)
    if len(late) < max(SEVERAL, MOST * int(mine.sum())) or not stand_out(beyond[None, :])[0]:
        return []
    return late


def _is_late(excess: Floats, usual: float, least: float) -> bool:
    """In the middle, and in most of the iterations by half of that."""
    middle = float(np.median(excess))
    return middle > least and float((excess > (usual + middle) / 2).mean()) >= MOST
