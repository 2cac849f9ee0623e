"""Which operations begin beside their rank's chain, by what all ranks of a program show, and how late the first ones.

A late host hides it: what it launches last begins last, whatever it waits for. Guarantees: pure.
"""

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.job.stragglers.thresholds import HALF
from fleetprof_analyzer.trace.trace import Bools, Int64s


def share_passing(rank: Int64s, position: Int64s, kind: Int64s, passing: Bools) -> Bools:
    """Tells whether half of the operations at the same place of the same program are `passing`; all shapes (N,).

    `position` is the place in the program, -1: none. Ranks have one program if their kinds of operations follow each
    other in the same way.
    """
    shared = np.zeros(len(rank), np.bool_)
    regular = position >= 0
    if not passing[regular].any():
        return shared
    places = int(position[regular].max()) + 1
    programs = np.full((int(rank.max()) + 1, places), -1, np.int64)
    programs[rank[regular], position[regular]] = kind[regular]
    _, program = np.unique(programs, axis=0, return_inverse=True)
    place = program.reshape(-1)[rank[regular]] * places + position[regular]
    places_met, number = np.unique(place, return_inverse=True)
    share = np.bincount(number, passing[regular], len(places_met)) / np.bincount(number)
    shared[regular] = share[number] >= HALF
    return shared


def bound_first_lags(
    layout: ReplayLayout, iteration: Int64s, position: Int64s, passing: Bools, lag_ns: Int64s
) -> Int64s:
    """The lags, shape (N,), of what passes the chain: the first on its stream lags no more than in other iterations.

    What it stood behind was launched before the window, and is not in it. `passing`: operations that pass; `position`:
    their places in the program, -1 where not known.
    """
    bounded = lag_ns.copy()
    for first in np.flatnonzero(passing & (layout.previous < 0) & (position >= 0)):
        same = (layout.rank == layout.rank[first]) & (position == position[first]) & (iteration > iteration[first])
        if same.any():
            bounded[first] = min(int(lag_ns[first]), int(np.median(lag_ns[same])))
    return bounded
