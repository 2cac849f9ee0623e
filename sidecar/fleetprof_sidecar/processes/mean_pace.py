"""The pace of a process's steps over spans of some seconds, by its agent's reports.

The median iteration does not show pauses that a job makes now and then, such as a collection every fourth iteration.
The mean over seconds does.

Guarantees: pure; bounded; a count that goes back begins anew.
"""

from collections import deque
from statistics import median_low
from typing import Final

SPAN_NS: Final = 5 * 10**9
_MOST_SPANS: Final = 12  # a minute


class MeanPace:
    """The latest spans of at least SPAN_NS, each with its mean step."""

    def __init__(self) -> None:
        self._begin: tuple[int, int] | None = None
        self._step_ns: deque[int] = deque(maxlen=_MOST_SPANS)

    def note(self, step: int, at_unix_ns: int) -> None:
        """Takes one report."""
        if self._begin is None or step < self._begin[0] or at_unix_ns < self._begin[1]:
            self._begin = (step, at_unix_ns)
            self._step_ns.clear()
            return
        steps, elapsed_ns = step - self._begin[0], at_unix_ns - self._begin[1]
        if steps and elapsed_ns >= SPAN_NS:
            self._step_ns.append(elapsed_ns // steps)
            self._begin = (step, at_unix_ns)

    @property
    def step_ns(self) -> int:
        """The median of the spans' mean steps; 0: there is no whole span yet."""
        return median_low(self._step_ns) if self._step_ns else 0
