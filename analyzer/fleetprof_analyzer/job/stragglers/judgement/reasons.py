"""Why a verdict is as it is: the facts of each reason, before its sentence.

Guarantees: frozen; holds no sentence, save what an exception said. `fleetprof_analyzer.words.verdict_reasons` says it.
"""

from dataclasses import dataclass
from enum import Enum, auto

from fleetprof_api.report.stragglers import Cause, Undecided

from fleetprof_analyzer.job.stragglers.judgement.untold import Untold
from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch


@dataclass(frozen=True, slots=True)
class LateRanks:
    """The others wait for these ranks, for the first one most; `peers`: how many do the same work as the first."""

    ranks: list[int]
    peers: int


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """Transfers of so many groups are slow; `slowest` has the ranks of the slowest, `meeting` those in all of them."""

    groups: int
    slowest: list[int]
    factor: float  # of the slowest group, over groups like it
    meeting: list[int]


@dataclass(frozen=True, slots=True)
class HeavyStage:
    """The ranks of a pipeline stage take longer than the others; `excess` over their mean, and what it is."""

    ranks: list[int]
    excess: float
    cause: Cause = "stage_imbalance"


@dataclass(frozen=True, slots=True)
class Moving:
    """This moves from rank to rank."""

    cause: Cause


@dataclass(frozen=True, slots=True)
class Unsure:
    """A rank may be late, within an interval."""

    candidate: Undecided


@dataclass(frozen=True, slots=True)
class Disputed:
    """A rank is late by so much of the iteration, unless its host waited for others in its gaps, which is not known."""

    rank: int
    gain: float
    has_operators: bool  # its host's were recorded


@dataclass(frozen=True, slots=True)
class Unfaithful:
    """The replayed window is so many times as long as the measured one, and what stands out costs less than that."""

    fidelity: float


@dataclass(frozen=True, slots=True)
class UnsureTurns:
    """The ranks may pause in turns; so many iterations would decide."""

    needed: int


@dataclass(frozen=True, slots=True)
class TooNoisy:
    """So many iterations would not show even a rank that costs a large part of them."""

    iterations: int


@dataclass(frozen=True, slots=True)
class TooFewIterations:
    """So many are in all of the traces, and so many are needed."""

    iterations: int
    needed: int


@dataclass(frozen=True, slots=True)
class Nobody:
    """No rank holds the others up, as far as the ranks tell that left a trace; `missing` left none.

    `alone`: no two of them do the same work. `floor`: what a rank would have to cost to show, share of an iteration.
    """

    missing: list[int]
    alone: bool = False
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """The `missing` ranks left no trace, and what they do hides what others cost.

    `rank` takes longer than its peers by the `share` of its own time; None: the ranks wait for the `share` of an
    iteration longer than the captured ones explain.
    """

    missing: list[int]
    rank: int | None
    share: float


@dataclass(frozen=True, slots=True)
class NotStored:
    """The operations of so many ranks were not stored with their summaries."""

    ranks: int


@dataclass(frozen=True, slots=True)
class NotComparable:
    """Fewer than two ranks are left to compare."""

    left_out: list[Untold]


class Obstacle(Enum):
    """A fact that forbids a verdict by itself."""

    MEMORY = auto()  # too little of it to compare the ranks' operations
    SAMPLED = auto()  # a trace holds a sample of its operations
    SEVERAL_GROUPS = auto()  # of ranks, and the traces do not say to which one an operation belongs
    CIRCLE = auto()  # of operations that wait for each other


@dataclass(frozen=True, slots=True)
class AnalyzerFault:
    """An exception that nobody foresaw: its type and what it said."""

    kind: str
    message: str


Reason = (
    LateRanks
    | SlowLinks
    | HeavyStage
    | Moving
    | Unsure
    | Disputed
    | Unfaithful
    | UnsureTurns
    | TooFewIterations
    | TooNoisy
    | Nobody
    | Unseen
    | NotStored
    | NotComparable
    | Mismatch
    | Obstacle
    | AnalyzerFault
)
