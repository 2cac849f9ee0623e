"""Facts that forbid a comparison of two reports, or may explain a change by themselves, before their sentences.

Guarantees: frozen; holds no sentence. `fleetprof_analyzer.words.comparison` says it.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class NoIterations:
    """No rank of one report lists an iteration."""

    side: Side


@dataclass(frozen=True, slots=True)
class OtherKind:
    """One run had devices, the other had none."""

    before: Literal["gpu", "cpu"]
    after: Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True)
class RanksNotKnown:
    """Traces do not say which rank they are, and their number differs."""


@dataclass(frozen=True, slots=True)
class FewShared:
    """Too few ranks are in both runs."""

    shared: int
    before: int
    after: int


class Property(Enum):
    """A property that must be the same in both runs."""

    WORLD_SIZE = auto()
    DEVICE = auto()
    DEVICES_PER_RANK = auto()
    ITERATION_MARKS = auto()
    STEPS_PER_ITERATION = auto()


@dataclass(frozen=True, slots=True)
class Differs:
    """A property has these values before, and those after."""

    what: Property
    before: list[str]
    after: list[str]


@dataclass(frozen=True, slots=True)
class OtherCollection:
    """The captures recorded different things."""

    before: list[str]
    after: list[str]


@dataclass(frozen=True, slots=True)
class Sampled:
    """Traces of one side hold a sample of what ran."""

    side: Side


Obstacle = NoIterations | OtherKind | RanksNotKnown | FewShared | Differs | OtherCollection | Sampled


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Ranks that are left out, since one report lacks them."""

    lacking: Side
    ranks: list[int | None]


@dataclass(frozen=True, slots=True)
class SameCapture:
    """Both reports are of one capture."""


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """The requests had different targets."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OtherTorch:
    """The jobs ran with different versions of PyTorch."""

    before: list[str]
    after: list[str]


@dataclass(frozen=True, slots=True)
class WarmingUp:
    """A capture begins at so early an iteration that the job may still have been warming up."""

    side: Side
    iteration: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """So many traces end in the middle."""

    side: Side
    traces: int


@dataclass(frozen=True, slots=True)
class FewIterations:
    """So many iterations are too few for a verdict, which needs `fewest`."""

    side: Side
    iterations: int
    fewest: int


@dataclass(frozen=True, slots=True)
class CameAndWent:
    """Iterations before the captures changed, captured ones did not."""

    longer: bool


Circumstance = LeftOut | SameCapture | OtherTarget | OtherTorch | WarmingUp | Truncated | FewIterations | CameAndWent
