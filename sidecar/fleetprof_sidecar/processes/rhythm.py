"""The rhythm of a process's polls, and so whether its next poll can be foretold.

A client polls at an interval of its own, but one that could not reach us waits longer with every try, for up to 5 s
(10 s in all, docs/kineto-protocol.md#without-a-daemon), and polls that waited in our queue come in a burst when we come
back. Until it has polled regularly again nobody knows when its next poll comes, and a start that relies on it would be
missed.

A regular poll may still be late, when the machine is busy: a start that leaves no time for that is missed as well.

Guarantees: pure; one irregular poll ends the rhythm, one regular poll restores it; an interval is learned from two that
agree; lateness is forgotten over some ten punctual polls.
"""

from dataclasses import dataclass
from typing import Final

_WEIGHT: Final = 0.25
_ALIKE: Final = 2  # a poll that comes within half and twice the interval is regular: machines are loaded, Kineto is not
_FORGOTTEN: Final = 0.8  # of the lateness, with each poll
_BURST_NS: Final = 20_000_000  # no client polls so often by itself: these waited in our queue


@dataclass(slots=True)
class PollRhythm:
    """One client's polls. `interval_ns`: smoothed over regular polls, 0 before the third poll, kept through a pause.

    `is_steady`: the latest poll came when it was due, so the next one will. `lateness_ns`: how much later than that
    regular polls came lately, the largest of them, which fades.
    """

    interval_ns: float = 0.0
    is_steady: bool = False
    lateness_ns: float = 0.0
    _elapsed_ns: int = 0

    def note(self, elapsed_ns: int) -> None:
        """A poll came so long after the one before."""
        before, self._elapsed_ns = self._elapsed_ns, elapsed_ns
        if elapsed_ns < _BURST_NS:
            self.is_steady = False
        elif _are_alike(elapsed_ns, self.interval_ns):
            self.lateness_ns = max(elapsed_ns - self.interval_ns, self.lateness_ns * _FORGOTTEN, 0.0)
            self.interval_ns += _WEIGHT * (elapsed_ns - self.interval_ns)
            self.is_steady = True
        else:
            self.is_steady = _are_alike(elapsed_ns, before)
            if self.is_steady:
                self.interval_ns = float(elapsed_ns)


def _are_alike(one_ns: float, other_ns: float) -> bool:
    return max(one_ns, other_ns) <= _ALIKE * min(one_ns, other_ns)
