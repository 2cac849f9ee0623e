"""Limits of any verdict over the ranks at hand: the facts of each limit, before its sentence.

Guarantees: frozen; holds no sentence. `fleetprof_analyzer.words.untold` says it.
"""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class WithoutRank:
    """So many traces were left out: they do not say their rank, or claim the same one."""

    traces: int


@dataclass(frozen=True, slots=True)
class TooShort:
    """These ranks were left out: their traces hold too few of the iterations."""

    ranks: list[int]


@dataclass(frozen=True, slots=True)
class NotCaptured:
    """These ranks left no trace."""

    ranks: list[int]


@dataclass(frozen=True, slots=True)
class PartnersNotKnown:
    """Operations for which the traces do not say who took part; `kinds` has their number by kind."""

    unmatched: int
    operations: int
    kinds: dict[str, int]


@dataclass(frozen=True, slots=True)
class OperationsCut:
    """Only the first so many collectives of a rank were compared."""

    most: int


@dataclass(frozen=True, slots=True)
class Alone:
    """No other rank does the same work as one of these."""

    ranks: list[int]
    loaders_compared: bool


@dataclass(frozen=True, slots=True)
class OperationsLost:
    """The operations of these ranks were not stored."""

    ranks: list[int]


class Unmeasured(Enum):
    """A quantity that nothing in the traces measures."""

    LINKS = auto()  # every process group is the only one of its kind
    CLOCKS = auto()  # of GPUs, which were not sampled


Untold = (
    WithoutRank | TooShort | NotCaptured | PartnersNotKnown | OperationsCut | Alone | OperationsLost | Unmeasured
)  # fmt: skip
