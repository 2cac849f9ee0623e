"""Waits of ranks for each other in collectives, as marks: what a rank spends in one beyond the rank that spends least.

Guarantees: pure; durations of each rank's own clock only, so that no alignment enters; kinds that all members leave
together only.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.rank.communication.operations import KINDS, SYNCHRONISING
from fleetprof_analyzer.timeline.events.marks import LEAST_NS, Mark, Span, keep_longest, touches
from fleetprof_analyzer.trace.trace import Int64s, Place

_TOGETHER: Final = np.array([KINDS.index(kind) for kind in SYNCHRONISING])


class CollectiveWaits:
    """The waits of all ranks of a job; without matched collectives there are none."""

    def __init__(self, matched: Matched | None) -> None:
        self._matched = matched
        count = 0 if matched is None else matched.count
        # Per collective the least time that a member spends in it, and who that is: the one that came last.
        self._least_ns = np.full(count, np.iinfo(np.int64).max)
        self._last = np.zeros(count, np.int64)
        self._number: dict[str, int] = {}
        for number, one in enumerate([] if matched is None else matched.ranks):
            self._number[one.source] = number
            at = np.flatnonzero(self._joined(number) >= 0)
            joined, duration = self._joined(number)[at], one.columns.duration_ns[at]
            shorter = duration < self._least_ns[joined]
            self._least_ns[joined[shorter]] = duration[shorter]
            self._last[joined[shorter]] = number

    def mark(self, source: str, places: Sequence[Place], span: Span) -> list[Mark]:
        """The waits of one rank of at least 10 µs that touch the span; `places` are those of its trace."""
        number = self._number.get(source)
        if number is None or self._matched is None:
            return []
        one, joined = self._matched.ranks[number], self._joined(number)
        columns = one.columns
        by_track: dict[str, list[Mark]] = defaultdict(list)
        for at in np.flatnonzero((joined >= 0) & np.isin(columns.kind, _TOGETHER)).tolist():
            transfer, duration = int(self._least_ns[joined[at]]), int(columns.duration_ns[at])
            start, wait = int(columns.start_ns[at]), duration - transfer
            if wait < LEAST_NS or not touches(start, start + wait, span):
                continue
            track = f"waits ({'stream' if one.kind == 'gpu' else 'thread'} {places[columns.place[at]][1]})"
            args: dict[str, str | int | float] = {
                "collective": KINDS[int(columns.kind[at])],
                "transfer_ns": transfer,
                "duration_ns": duration,
            }
            last = self._matched.ranks[int(self._last[joined[at]])].rank
            by_track[track].append(Mark(track, f"waits for rank {last}", start, wait, args))
        return [mark for marks in by_track.values() for mark in keep_longest(marks)]

    def _joined(self, number: int) -> Int64s:
        assert self._matched is not None
        return self._matched.collective[number]
