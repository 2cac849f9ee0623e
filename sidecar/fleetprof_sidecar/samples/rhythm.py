"""The job's own iterations before a recorded one: whether one as long was due, how often it comes.

A checkpoint, a collection or an evaluation comes every so many iterations. Guarantees: pure; a rhythm is what most long
iterations keep, each of its beats seen four times at least.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

_ALIKE: Final = 2  # so much shorter may be what counts as the same pause
_LEAST_BEATS: Final = 4
_FARTHEST: Final = 1024


class Precedents(NamedTuple):
    """The number of iterations that compare with the recorded one, how many of them were as long, the longest of them.

    With a rhythm (period in iterations, 0: none) those compare that came, as the recorded one did, when a pause was
    due, or when none was.
    """

    compared: int
    alike: int
    longest_ns: int
    rhythm: int


def find_precedents(before_ns: Mapping[int, int], recorded_ns: int) -> Precedents:
    """`before_ns`: the iterations before, by how many of them earlier than the recorded one."""
    before_ns = {distance: length for distance, length in before_ns.items() if distance <= _FARTHEST}
    long = [distance for distance, length in before_ns.items() if _ALIKE * length >= recorded_ns]
    period, beats = _find_rhythm(before_ns, long)
    is_due = 0 in beats
    compared = [distance for distance in before_ns if not period or (distance % period in beats) == is_due]
    alike = len(set(long).intersection(compared))
    longest_ns = max((before_ns[distance] for distance in compared), default=0)
    return Precedents(len(compared), alike, longest_ns, period)


def _find_rhythm(distances: Mapping[int, int], long: list[int]) -> tuple[int, frozenset[int]]:
    """The period that explains most of the long iterations, and at which distances within it they come."""
    best, period, beats = 0, 0, frozenset[int]()
    if len(long) < _LEAST_BEATS or 4 * len(long) >= 3 * len(distances):
        return period, beats
    for candidate in range(2, max(long) // (_LEAST_BEATS - 1) + 1):
        hits = Counter(distance % candidate for distance in long)
        if max(hits.values()) < _LEAST_BEATS:
            continue
        count = Counter(distance % candidate for distance in distances)
        kept = frozenset(
            phase for phase, hit in hits.items() if count[phase] >= _LEAST_BEATS and 4 * hit >= 3 * count[phase]
        )
        explained = sum(hits[phase] for phase in kept)
        gain = 2 * explained - sum(count[phase] for phase in kept)
        if 2 * explained >= len(long) and gain > best:
            best, period, beats = gain, candidate, kept
    return period, beats
