"""The place among its work at which a rank waits for its operations, as the ranks that do the same work show it.

A trace tells only the earliest place at which a chain may wait for an operation: the first work that begins after the
operation's end. On a rank that is late nearly all operations have ended before, so it seems to wait sooner than its
program does, and would be held up there once it is as fast as its peers. Guarantees: pure; the work of a segment stays
what it is.
"""

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.trace.trace import Bools, Int64s

Floats = npt.NDArray[np.float64]


def place_joins(
    layout: ReplayLayout, work_ns: Int64s, owner: Int64s, places: tuple[Int64s, Int64s], rank: int, peers: Int64s
) -> Int64s:
    """The marks' work, shape (M,), with the joins of `rank` no earlier in their segments than at the median peer.

    `owner`, shape (M,), is the operation whose segment a mark belongs to. `places` are the operations' iterations
    and places in the program, shapes (N,), -1 where they are not known.
    """
    iteration, position = places
    known = (iteration >= 0) & (position >= 0)
    place = np.where(known, iteration * (int(position.max()) + 1) + position, -1)
    mine = np.flatnonzero(layout.mark_rank == rank)
    kept = owner[mine] < len(layout.rank)
    mine = mine[kept]
    if len(mine) == 0 or len(peers) == 0:
        return work_ns
    work_until = np.cumsum(work_ns[mine])
    first = np.flatnonzero(np.diff(owner[mine], prepend=-1))
    segment = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(mine))))
    last = np.append(first[1:], len(mine)) - 1
    begin, total = work_until[first] - work_ns[mine[first]], np.add.reduceat(work_ns[mine], first)
    share = (work_until - begin[segment]) / np.maximum(total[segment], 1)
    theirs = _shares_of_peers(layout, work_ns, place, mine, last, segment, peers)
    joins = layout.mark_joins[mine] & np.isfinite(theirs)
    share = np.where(joins, np.maximum(share, np.where(joins, theirs, 0.0)), share)
    # Of one segment no mark comes before the one that it follows.
    share = np.maximum.accumulate(share + 2 * segment) - 2 * segment
    share[last] = np.where(total > 0, 1.0, share[last])
    reached = np.rint(begin[segment] + share * total[segment]).astype(np.int64)
    placed = work_ns.copy()
    placed[mine] = np.diff(reached, prepend=begin[0])
    return placed


def _shares_of_peers(
    layout: ReplayLayout, work_ns: Int64s, place: Int64s, mine: Int64s, last: Int64s, segment: Int64s, peers: Int64s
) -> Floats:
    """The place in the rank's segment of each of its marks `mine` on the median peer, 0 to 1; nan where none has it."""
    launches = ~layout.mark_stops
    places = int(place.max()) + 1
    key = place[layout.mark_operation[mine]]
    stop = key[last]
    start = np.concatenate(([-1], stop[:-1]))
    shares = np.full((len(peers), len(mine)), np.nan)
    for number, peer in enumerate(peers.tolist()):
        theirs = np.flatnonzero(layout.mark_rank == peer)
        work_until = np.cumsum(work_ns[theirs]).astype(np.float64)
        at_launch = _by_place(place[layout.mark_operation[theirs]], work_until, launches[theirs], places)
        at_join = _by_place(place[layout.mark_operation[theirs]], work_until, layout.mark_joins[theirs], places)
        begin = np.where(start >= 0, at_launch[start], np.nan)
        total = np.where(stop >= 0, at_launch[stop], np.nan) - begin
        reached = np.where(key >= 0, at_join[key], np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares[number] = np.clip((reached - begin[segment]) / np.where(total > 0, total, np.nan)[segment], 0.0, 1.0)
    known = ~np.isnan(shares).all(axis=0)
    found = np.full(len(mine), np.nan)
    found[known] = np.nanmedian(shares[:, known], axis=0)
    return found


def _by_place(place: Int64s, work_until: Floats, chosen: Bools, places: int) -> Floats:
    """The work done up to the chosen marks, by the places of their operations; nan where there is none."""
    found = np.full(places, np.nan)
    chosen = chosen & (place >= 0)
    found[place[chosen]] = work_until[chosen]
    return found
