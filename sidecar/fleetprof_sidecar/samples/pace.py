"""The pace that a job has now: of its iterations before a recording, those since its pace changed last.

Another stage of training, other data or a larger batch makes all iterations shorter or longer from one on. What came
before tells nothing of those to come. Guarantees: pure; a pause, or several in a row, is no change of pace; one where a
recording may have made the difference is none either: it lies between two iterations that none touched.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Final

_LEAST: Final = 5  # iterations on each side
_RATIO: Final = 1.25


def keep_pace(before_ns: Mapping[int, int]) -> dict[int, int]:
    """Keeps of `before_ns`, lengths by how many iterations before the recorded one, those at the latest pace."""
    distances = sorted(before_ns)
    late: list[int] = []
    early = sorted(before_ns.values())
    for count, distance in enumerate(distances, 1):
        length = before_ns[distance]
        insort(late, length)
        del early[bisect_left(early, length)]
        if len(early) < _LEAST:
            break
        is_seen = distances[count] == distance + 1
        if count >= _LEAST and is_seen and _differ(late, early, length, before_ns[distance + 1]):
            return {each: before_ns[each] for each in distances[:count]}
    return dict(before_ns)


def _differ(late: Sequence[int], early: Sequence[int], first: int, last: int) -> bool:
    """Tells whether nearly all `late` are beyond nearly all `early`; `first` of the late, `last` of the early."""
    for low, high, before, after in ((early, late, last, first), (late, early, first, last)):
        most, least = low[9 * (len(low) - 1) // 10], high[(len(high) + 9) // 10 - 1]
        is_between = 2 * before <= most + least <= 2 * after
        if most < least and is_between and _middle(high) >= _RATIO * _middle(low):
            return True
    return False


def _middle(lengths: Sequence[int]) -> int:
    return lengths[(len(lengths) - 1) // 2]
