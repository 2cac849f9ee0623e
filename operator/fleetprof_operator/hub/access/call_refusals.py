"""Who was not let in, or turned out: counted by kind, and logged in sum.

Guarantees: the first refusal after a quiet time is logged at once, all that follow within LINE_EVERY_S are one line, so
that nobody can fill the log by being refused; no token and no more than MOST_PEERS addresses are remembered.
"""

import asyncio
import logging
from collections import Counter
from enum import StrEnum
from typing import Final

LINE_EVERY_S: Final = 60.0
MOST_PEERS: Final = 1000
_SHOWN: Final = 3
_LONGEST: Final = 300

log = logging.getLogger(__name__)


class CallRefusal(StrEnum):
    """Why somebody was refused; docs/metrics.md explains each."""

    BAD_TOKEN = "BadToken"  # noqa: S105
    NAMESPACE = "NamespaceNotServed"
    CALLS = "TooManyCalls"
    STREAMS = "TooManyStreams"
    OFTEN = "TooOften"
    BUDGET = "OverBudget"
    PROTOCOL = "Protocol"
    NOT_READING = "NotReading"


class CallRefusals:
    """Call it in one event loop. `counts` has all since the beginning, by kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys((kind.value for kind in CallRefusal), 0))
        self._kinds: Counter[str] = Counter()
        self._peers: Counter[str] = Counter()
        self._latest = ""
        self._timer: asyncio.TimerHandle | None = None

    def note(self, kind: CallRefusal, who: str, message: str) -> None:
        """`who` (an address, or namespace and pod) was refused with that sentence."""
        self.counts[kind.value] += 1
        if self._timer is None:
            log.warning("refused (%s): %s: %s", kind, who, message[:_LONGEST])
            self._timer = asyncio.get_running_loop().call_later(LINE_EVERY_S, self._tell)
            return
        self._kinds[kind.value] += 1
        if who in self._peers or len(self._peers) < MOST_PEERS:
            self._peers[who] += 1
        self._latest = message[:_LONGEST]

    def close(self) -> None:
        """Tells what was not told yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._timer = None
        if not self._kinds:
            return
        kinds = ", ".join(f"{number} {kind}" for kind, number in self._kinds.most_common())
        most = ", ".join(f"{who} ({number})" for who, number in self._peers.most_common(_SHOWN))
        others = max(0, len(self._peers) - _SHOWN)
        log.warning(
            "refused in the last %g s: %s; most of them %s%s; the latest: %s",
            LINE_EVERY_S,
            kinds,
            most,
            f" and {others} others" if others else "",
            self._latest,
        )
        self._kinds.clear()
        self._peers.clear()
        self._timer = asyncio.get_running_loop().call_later(LINE_EVERY_S, self._tell)
