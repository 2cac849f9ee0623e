"""Whether ranks are blocked in turns: now one and now the next, around all of a role and again.

Checkpoints, logs and evaluations that ranks share out do that. On a full machine every rank is blocked now and then,
but chance does not go around. Guarantees: pure; says so only where ranks that could be exchanged for each other in
every iteration would seldom look like that.
"""

from itertools import permutations
from statistics import NormalDist
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.trace.trace import Bools

_CHANCE: Final = 0.01  # four turns of each of two ranks
_LEAST_EXCESS: Final = 0.1  # of the own time
_LEAST_ROUNDS: Final = 2
_MOST_RANKS: Final = 6  # their orders are all tried


def find_turns(table: OwnTime, numbers: list[int]) -> Floats | None:
    """How long each rank of the only role is blocked in its turns beyond its usual, ns, shape (R, K); None: no turns.

    `numbers` of the iterations, shape (K,). By those that were sampled on all ranks, without the first one: what lies
    before the window's first collective was not recorded.
    """
    blocked = table.blocked_ns()
    if blocked is None or len(np.unique(table.role)) > 1 or not 1 < len(blocked) <= _MOST_RANKS:
        return None
    known: Bools = np.asarray(np.isfinite(blocked).all(axis=0))
    known[0] = False
    if known.sum() < _LEAST_ROUNDS * len(blocked):
        return None
    level = max(float(np.median(table.own_ns)), 1.0)
    turns = order_turns(blocked[:, known] / level, np.array(numbers)[known].tolist())
    if turns is None:
        return None
    beyond = np.zeros(blocked.shape)
    for rank, turn in enumerate(turns):
        mine = blocked[rank, known]
        beyond[rank, known] = np.where(turn, np.maximum(mine - float(np.median(mine[~turn])), 0.0), 0.0)
    return beyond


def order_turns(shares: Floats, numbers: list[int]) -> Bools | None:
    """Whose turn it is, shape (R, K), from the ranks' times as shares of the usual own time; None without turns.

    Had any rank the time of any other with the same odds in each iteration, the sum over the iterations of the time of
    the rank whose turn it is would be normal. Of all orders the likeliest is tested, at a chance that holds for all.
    """
    ranks = len(shares)
    at = np.array(numbers) % ranks
    columns = np.arange(len(at))
    beyond = shares - shares.mean(axis=0)
    error = float(np.sqrt((beyond**2).mean(axis=0).sum()))
    orders = [np.array(order) for order in permutations(range(ranks))]
    best = max(orders, key=lambda order: float(beyond[order[at], columns].sum()))
    total = float(beyond[best[at], columns].sum())
    if error <= 0 or len(orders) * (1 - NormalDist().cdf(total / error)) > _CHANCE:
        return None
    turns = best[at][None, :] == np.arange(ranks)[:, None]
    return turns if all(_stands_out(mine, turn) for mine, turn in zip(shares, turns, strict=True)) else None


def _stands_out(shares: Floats, turn: Bools) -> bool:
    """Whether a rank is blocked in most of its turns, and mostly then."""
    mine, others = float(np.median(shares[turn])), float(np.median(shares[~turn]))
    return mine - others >= _LEAST_EXCESS and mine >= 2 * others
