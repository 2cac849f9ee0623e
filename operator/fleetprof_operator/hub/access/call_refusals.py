"""Calls and streams that were refused or ended: counted by kind, and logged in sum (`Refusals`); no token is kept."""

import logging
import math
import time
from collections import Counter
from enum import StrEnum

from fleetprof_operator.web.refusals import Refusals

log = logging.getLogger(__name__)


class CallRefusal(StrEnum):
    """The reason why a caller was refused; docs/metrics.md explains each."""

    BAD_TOKEN = "BadToken"  # noqa: S105
    NAMESPACE = "NamespaceNotServed"
    CALLS = "TooManyCalls"
    STREAMS = "TooManyStreams"
    OFTEN = "TooOften"
    BUDGET = "OverBudget"
    PROTOCOL = "Protocol"
    NOT_READING = "NotReading"


class CallRefusals:
    """`counts` has all since the beginning, by kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys((kind.value for kind in CallRefusal), 0))
        self._lines = Refusals(log, "calls and streams")

    def note(self, kind: CallRefusal, who: str, message: str) -> None:
        """`who` (an address, or namespace and pod) was refused with that sentence."""
        self.counts[kind.value] += 1
        self._lines.note(kind.value, time.monotonic(), f"{who}: {message}")

    def close(self) -> None:
        """Tells what was not told yet."""
        self._lines.tell(math.inf)
