"""Who waited for whom in each collective, as marks: what a rank spends in it beyond the rank that spends least.

Guarantees: pure; durations of each rank's own clock only, so that no alignment enters; kinds that all members leave
together only.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.communication.operations import KINDS, SYNCHRONISING
from fleetprof_analyzer.cut.marks import LEAST_NS, Mark, Span, keep_longest, touches
from fleetprof_analyzer.stragglers.matching import Matched
from fleetprof_analyzer.trace import Int64s, Place

_TOGETHER: Final = np.array([KINDS.index(kind) for kind in SYNCHRONISING])


def mark_waits(matched: Matched, source: str, places: Sequence[Place], span: Span) -> list[Mark]:
    """The waits of one rank for others of at least 10 µs that touch the span; `places` are those of its trace."""
    number = next((n for n, one in enumerate(matched.ranks) if one.source == source), None)
    if number is None:
        return []
    least, last = _shortest(matched)
    one = matched.ranks[number]
    columns, collective = one.columns, matched.collective[number]
    by_track: dict[str, list[Mark]] = defaultdict(list)
    for at in np.flatnonzero((collective >= 0) & np.isin(columns.kind, _TOGETHER)).tolist():
        joined = int(collective[at])
        start, wait = int(columns.start_ns[at]), int(columns.duration_ns[at] - least[joined])
        if wait < LEAST_NS or not touches(start, start + wait, span):
            continue
        track = f"waits ({'stream' if one.kind == 'gpu' else 'thread'} {places[columns.place[at]][1]})"
        said: dict[str, str | int | float] = {
            "collective": KINDS[int(columns.kind[at])],
            "transfer_ns": int(least[joined]),
            "duration_ns": int(columns.duration_ns[at]),
        }
        by_track[track].append(Mark(track, f"waits for rank {last[joined]}", start, wait, said))
    return [mark for marks in by_track.values() for mark in keep_longest(marks)]


def _shortest(matched: Matched) -> tuple[Int64s, list[int | None]]:
    """Per collective the least time that a member spends in it, and the member: the one that came last."""
    least = np.full(matched.count, np.iinfo(np.int64).max)
    who = np.zeros(matched.count, np.int64)
    for number, one in enumerate(matched.ranks):
        at = np.flatnonzero(matched.collective[number] >= 0)
        joined, duration = matched.collective[number][at], one.columns.duration_ns[at]
        shorter = duration < least[joined]
        least[joined[shorter]] = duration[shorter]
        who[joined[shorter]] = number
    return least, [matched.ranks[number].rank for number in who.tolist()]
