"""A rank that may be late, as a detector found it."""

from dataclasses import dataclass
from enum import StrEnum

from fleetprof_analyzer.trace.trace import Bools, Int64s


class LatePattern(StrEnum):
    """The rank is late in nearly all iterations, or now and then."""

    PERSISTENT = "persistent"
    INTERMITTENT = "intermittent"


class FoundBy(StrEnum):
    """The evidence by which a rank was found."""

    PEERS = "peers"  # its times beside those of its peers
    BLOCKED = "blocked"  # the time that its thread was blocked, beside the peers'
    WORK = "work"  # it has more to do than its peers
    KERNELS = "kernels"  # its device is slower at the same kernels
    LOADER = "loader"  # its loading takes longer than that of all other ranks


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rank (its position) that may be late; `iterations` are those in which it was, `excess` its share there.

    `mended_ns`: its work and its host's time without the fault, shapes (N,), where no peer shows them.
    """

    rank: int
    pattern: LatePattern
    excess: float
    iterations: Bools
    by: FoundBy = FoundBy.PEERS
    mended_ns: tuple[Int64s, Int64s] | None = None
