"""One capture at one moment as a display needs it, wherever it was asked for: from the hub, or on Kubernetes.

Guarantees: pure values; the text in it comes from elsewhere and is not yet safe for a terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """So many ranks got so far; `style` is one of rich's."""

    number: int
    words: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank's line. Lines with a lower `urgency` are shown where there is no room for all."""

    rank: int
    words: str
    style: str = ""
    note: str = ""
    urgency: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureView:
    """`sentence` is how the capture stands, `stage` the word for it where counts do not tell.

    `ranks` is empty where only counts are known. Times are 0 when unknown.
    """

    title: str
    sentence: str
    stage: str = ""
    counts: Sequence[Count] = ()
    ranks: Sequence[RankRow] = ()
    finished: bool = False
    began_unix_ns: int = 0
    ended_unix_ns: int = 0
