"""Tells if the hosts of CPU-only ranks pause in turns: checkpoints, logging, evaluation, now on one and now on another.

On a full machine every thread is held up now and then, and not only where it waits for a core. A program's own pause
comes again, and comes in one line of its code. Guarantees: pure; where threads were not sampled, what no operator
filled counts as a pause.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.movement import explained_share, restlessness
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.place import positions_of
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import FEW_ITERATIONS, HALF, SEVERAL, USUAL
from fleetprof_analyzer.rank.host.by_iteration import find_late_place
from fleetprof_analyzer.trace.trace import Bools, Int64s

_LEAST_RESTLESS: Final = 0.15  # of the own time; threads that share cores run restlessly without a reason of their own
_LONG: Final = 2.0  # over what the rank does besides
_LEAST_OFTEN: Final = 0.125  # of the iterations
# A place needs a quarter of the time that it is to explain: so of pauses one line has half.
_TWICE: Final = 2


def pauses_move(replay: Replay, table: OwnTime) -> bool:
    """Tells whether what the threads run moves, or ranks pause again and again, each in a line of code.

    Half of the ranks, and two at the least.
    """
    if runs_move(table):
        return True
    pauses, long = find_pauses(table)
    again = np.flatnonzero(come_again(table, long)).tolist()
    shown = [rank for rank in again if _in_one_line(replay, rank, long[rank], pauses[rank])]
    return len(shown) >= max(HALF * len(long), SEVERAL)


def find_pauses(table: OwnTime) -> tuple[Int64s, Bools]:
    """Own time in which the thread neither ran nor waited for a core, and where that is much longer than what it ran.

    Beyond what is usual on that rank. Shapes (R, K); 0 in iterations that were not sampled.
    """
    known = _sampled(table)
    if known is None:
        pauses = _beyond_usual(table.parts_ns["host"], np.ones(table.own_ns.shape, np.bool_))
        return pauses, np.asarray(pauses > _LONG * float(np.median(table.own_ns - table.parts_ns["host"])))
    spent = np.where(known, table.waited_ns + table.ran_ns, table.own_ns)
    pauses = _beyond_usual(np.maximum(table.own_ns - spent, 0), known)
    least = max(_LONG * float(np.median(table.ran_ns[known])), HALF * float(np.median(table.waited_ns[known])))
    long = pauses > least
    if table.others_waited_ns.shape == long.shape:
        long &= pauses > HALF * np.nan_to_num(table.others_waited_ns)
    return pauses, np.asarray(long)


def _beyond_usual(pauses_ns: Floats | Int64s, known: Bools) -> Int64s:
    usual = np.nanquantile(np.where(known, pauses_ns, np.nan), USUAL, axis=1)
    return np.asarray(np.maximum(pauses_ns - usual[:, None], 0).astype(np.int64))


def come_again(table: OwnTime, long: Bools) -> Bools:
    """The ranks that have long pauses often enough, of the iterations that were sampled, shape (R,)."""
    known = _sampled(table)
    sampled = np.full(len(long), long.shape[1]) if known is None else known.sum(axis=1)
    return np.asarray(long.sum(axis=1) >= np.maximum(SEVERAL, _LEAST_OFTEN * sampled))


def runs_move(table: OwnTime) -> bool:
    """Tells whether the threads run now longer and now shorter, and that is what moves their own time."""
    known = table.sampled()
    if known is None or table.ran_ns.shape != table.own_ns.shape:
        return False
    ran, own = table.ran_ns[:, known], table.own_ns[:, known]
    is_restless = restlessness(ran) >= _LEAST_RESTLESS * float(np.median(own))
    return is_restless and explained_share(own, ran) >= HALF


def _sampled(table: OwnTime) -> Bools | None:
    """Which iterations of each rank were sampled, shape (R, K); None where these are too few."""
    if not table.waited_ns.shape == table.ran_ns.shape == table.own_ns.shape:
        return None
    known: Bools = np.asarray(np.isfinite(table.waited_ns) & np.isfinite(table.ran_ns))
    return known if (known.sum(axis=1) >= FEW_ITERATIONS).all() else None


def _in_one_line(replay: Replay, rank: int, long: Bools, pauses_ns: Int64s) -> bool:
    """Tells whether the rank is in some line for half of what its long pauses have beyond its other iterations.

    True where it has no samples to tell.
    """
    thread = replay.matched.ranks[rank].thread
    if not thread.rows or long.all():
        return True
    late, others = (positions_of(replay, rank, set(np.flatnonzero(chosen).tolist())) for chosen in (long, ~long))
    longer = float(pauses_ns[long].mean() - pauses_ns[~long].mean())
    return find_late_place(thread, [thread], [late, others], _TWICE * longer) is not None
