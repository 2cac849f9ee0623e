"""A finding before its sentences: its numbers, and the facts that its sentences need.

Guarantees: frozen; holds no sentence. `fleetprof_analyzer.words.findings` says it in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.report.report_tables import IdlePlace, StageName
from fleetprof_api.report.stragglers import PipelineBubbles

from fleetprof_analyzer.job.findings.guards import SentenceGuard

IdleKind = Literal[
    "data_loading", "synchronization", "launch_bound", "python", "allocation", "optimizer", "waiting"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdleDevice:
    """Devices stand idle for one cause; `place`: where so much of it lies, on the rank with most there.

    None where no place holds a part worth a word.
    """

    cause: IdleKind
    place: IdlePlace | None
    place_permille: int = 1000  # of that rank's idle time of this cause
    zero_grad: Literal["", "zeroes", "drops"] = ""  # of `optimizer`: it is zero_grad, and what that does
    cores_busy: bool = False  # of `data_loading`: more workers would find no core


@dataclass(frozen=True, slots=True)
class ExposedCommunication:
    """Communication that nothing hides: whether the ranks wait or send, and the mean size of a call.

    `mean_bytes` is None where most of the time has no size; `ranks` is how many were captured. They wait by the
    "schedule" of a `pipeline`.
    """

    spent: Literal["not_known", "waiting", "schedule", "sending", "on_host"]
    mean_bytes: float | None = None
    ranks: int = 1
    pipeline: PipelineBubbles | None = None


@dataclass(frozen=True, slots=True)
class ExposedCopies:
    """Copies that nothing hides; `pageable`: some are from memory that is not pinned."""

    pageable: bool


@dataclass(frozen=True, slots=True)
class HeldUp:
    """The ranks hold each other up; the report's section `stragglers` has the facts."""


@dataclass(frozen=True, slots=True)
class HostLoading:
    """The training threads of all of so many CPU-only ranks wait for batches; `cores_busy`: workers find no core."""

    ranks: int
    cores_busy: bool = False


@dataclass(frozen=True, slots=True)
class HostSilence:
    """The training threads of all of so many CPU-only ranks run no operator, most of it between these two.

    None where no two operators have most of it between them.
    """

    between: tuple[str, str] | None
    ranks: int


@dataclass(frozen=True, slots=True)
class WaitsForCores:
    """The training threads of all of so many CPU-only ranks wait for a core."""

    ranks: int


@dataclass(frozen=True, slots=True)
class FullHosts:
    """All hosts of CPU-only ranks are full, and nobody sampled whether the training threads wait."""

    busy_permille: int
    ranks: int


@dataclass(frozen=True, slots=True)
class SomeLongIterations:
    """Some iterations are long on all ranks alike.

    `times`: the others' length; `every`: the distance of their numbers, 0 where it is not always the same.
    """

    numbers: Sequence[int]
    of: int
    times: float
    every: int
    stage: StageName | None


OF_CAUSES: Final = "ranks.causes"
"""The measure of every proven cause, by which a headline knows one."""


@dataclass(frozen=True, slots=True)
class ProvenCause:
    """A known cause on all ranks; `known` is that of the rank with the most, of so many iterations."""

    known: KnownCause
    of_iterations: int


Facts = (
    IdleDevice
    | ExposedCommunication
    | ExposedCopies
    | HeldUp
    | HostLoading
    | HostSilence
    | WaitsForCores
    | FullHosts
    | SomeLongIterations
    | ProvenCause
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFinding:
    """One thing that costs the job time; fields as those of the report's finding. `guard` is what justifies it."""

    kind: str
    facts: Facts
    guard: SentenceGuard
    gain_permille: int
    measure: str
    value_ns: int | None = None
    ranks: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    place: PlaceInCode | None = None
