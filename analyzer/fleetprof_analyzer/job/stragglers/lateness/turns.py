"""Tells whether ranks are blocked in turns: now one and now the next, around all of a role and again.

Checkpoints, logs and evaluations that ranks share out do that. On a full machine every rank is blocked now and then,
but chance does not go around. Guarantees: pure; says so only where ranks that could be exchanged for each other in
every iteration would seldom look like that.
"""

from dataclasses import dataclass
from itertools import permutations
from math import ceil
from statistics import NormalDist
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import LEAST_ON_HOST, SEVERAL, SUSPECTED
from fleetprof_analyzer.trace.trace import Bools

_CHANCE: Final = 0.01  # four turns of each of two ranks
_MOST_RANKS: Final = 6  # their orders are all tried


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """The likeliest order of the ranks of the only role, by n of K iterations, and how far it stands out of chance."""

    known: Bools  # (K,): the n iterations that tell
    shares: Floats  # (R, n): how long each rank is blocked, as share of the own time
    turn: Bools  # (R, n): whose turn it is
    errors: float  # standard errors of the sum over the turns
    orders: int  # that were tried

    def chance(self) -> float:
        """That the best of all orders stands out so far by chance."""
        return self.orders * (1 - NormalDist().cdf(self.errors))


def find_likeliest_order(table: OwnTime, numbers: list[int]) -> TurnOrder | None:
    """The order of the ranks in which whose turn it is is blocked longest; None where nothing tells.

    `numbers` of the iterations, shape (K,). By those that were sampled on all ranks, without the first one: what lies
    before the window's first collective was not recorded. Had any rank the time of any other with the same odds in each
    iteration, the sum over the iterations of the time of the rank whose turn it is would be normal.
    """
    blocked, known = table.blocked_ns(), table.sampled()
    if blocked is None or known is None or len(np.unique(table.role)) > 1 or not 1 < len(blocked) <= _MOST_RANKS:
        return None
    ranks = len(blocked)
    known[0] = False
    if known.sum() < SEVERAL * ranks:
        return None
    shares = np.asarray(blocked[:, known] / _level(table))
    beyond = shares - shares.mean(axis=0)
    error = float(np.sqrt((beyond**2).mean(axis=0).sum()))
    if error <= 0:
        return None
    at = np.array(numbers)[known] % ranks
    columns = np.arange(len(at))
    orders = [np.array(order) for order in permutations(range(ranks))]
    best = max(orders, key=lambda order: float(beyond[order[at], columns].sum()))
    turn: Bools = best[at][None, :] == np.arange(ranks)[:, None]
    return TurnOrder(known, shares, turn, float(beyond[best[at], columns].sum()) / error, len(orders))


def measure_turns(table: OwnTime, order: TurnOrder | None) -> Floats | None:
    """The time that each rank is blocked in its turns beyond its usual, ns, shape (R, K); None: there are no turns."""
    if order is None or order.chance() > _CHANCE or not _all_stand_out(order.shares, order.turn):
        return None
    blocked = order.shares * _level(table)
    beyond = np.zeros(table.own_ns.shape)
    for rank, turn in enumerate(order.turn):
        mine = blocked[rank]
        beyond[rank, order.known] = np.where(turn, np.maximum(mine - float(np.median(mine[~turn])), 0.0), 0.0)
    return beyond


def iterations_to_decide(order: TurnOrder | None) -> int | None:
    """The number of iterations that would tell whether the ranks are blocked in turns; None without a doubt."""
    if order is None or order.chance() > SUSPECTED:
        return None
    # The sum of turns grows with the iterations, its error with their root.
    needed = (NormalDist().inv_cdf(1 - _CHANCE / order.orders) / order.errors) ** 2
    ranks, count = len(order.turn), len(order.known)
    return ceil(max(needed, 1.0) * count) + ranks


def _level(table: OwnTime) -> float:
    return max(float(np.median(table.own_ns)), 1.0)


def _all_stand_out(shares: Floats, turns: Bools) -> bool:
    return all(_stands_out(mine, turn) for mine, turn in zip(shares, turns, strict=True))


def _stands_out(shares: Floats, turn: Bools) -> bool:
    """Tells whether a rank is blocked in most of its turns, and mostly then."""
    mine, others = float(np.median(shares[turn])), float(np.median(shares[~turn]))
    return mine - others >= LEAST_ON_HOST and mine >= 2 * others
