"""A log of refusals that who is refused cannot fill: the first at once, then their number from time to time.

Guarantees: at most one line per interval; pure but for the logger, with the time passed in (seconds).
"""

import logging
from collections import Counter
from typing import Final

_INTERVAL_S: Final = 30.0
_MOST_KINDS: Final = 8
_LONGEST: Final = 300


class Refusals:
    """The refusals of one server, told to `log`."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self._counts: Counter[str] = Counter()
        self._latest = ""
        self._told_s = -_INTERVAL_S

    def note(self, why: str, now_s: float, example: str = "") -> None:
        """One refusal; `why` is one of few texts, never what a peer sent; `example` is shown of the latest alone."""
        self._latest = example[:_LONGEST]
        self._counts[why if why in self._counts or len(self._counts) < _MOST_KINDS else "other reasons"] += 1
        self.tell(now_s)

    def tell(self, now_s: float) -> None:
        """Says what was refused since the last time, unless that was just now."""
        if not self._counts or now_s - self._told_s < _INTERVAL_S:
            return
        self._told_s = now_s
        counts = ", ".join(f"{count} × {why}" for why, count in sorted(self._counts.items()))
        example = f"; the latest: {self._latest}" if self._latest else ""
        self._log.warning("%s refused: %s%s", self._what, counts, example)
        self._counts.clear()
