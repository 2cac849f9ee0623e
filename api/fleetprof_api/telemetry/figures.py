"""The figures of running jobs now: the document of `top`, made by the hub.

Guarantees: numbers are in the units that the measures' names end with; a measure that nobody reports is not there.
"""

from typing import Final

import msgspec

AUDIENCE: Final = "figures.fleetprof.io"
HEADER: Final = "Fleetprof-Token"
"""Of a request for figures: a token for AUDIENCE. The API server's proxy would take `Authorization` away."""


class Aggregate(msgspec.Struct, frozen=True):
    """One measure over the ranks (or hosts) that report it: `count` of them, at least 1."""

    mean: float
    min: float
    max: float
    sum: float
    count: int
    lowest_rank: int | None = None


class Throttled(msgspec.Struct, frozen=True):
    """The number of ranks whose GPUs run slower than they could, by why."""

    power: int = 0  # the power cap, by software or by the board
    thermal: int = 0
    hardware: int = 0  # a hardware slowdown, an external brake


class WorstGpuFigures(msgspec.Struct, frozen=True):
    """The figures by which one GPU is clearly worse than others with the same work, and is to be drained."""

    rank: int
    node: str
    device: str
    joules_over_peers: float | None = None  # energy of an iteration, over the peers' median; 1: as much
    clock_under_peers: float | None = None  # clock of the SMs, as a share of the peers' median


class RankFigures(msgspec.Struct, frozen=True):
    """The latest report of one rank; None and left out: nobody measures it."""

    rank: int | None
    pod: str
    node: str
    device: str
    values: dict[str, float] = {}  # of its own and of its host, by measure
    sample_joules: float | None = None  # its part of a training sample's energy


class WorkloadFigures(msgspec.Struct, frozen=True):
    """One workload now. `ranks`: those that report; `figures`: by measure."""

    namespace: str
    kind: str
    name: str
    ranks: int
    world_size: int
    gpus: int
    start_unix_ns: int
    at_unix_ns: int  # when the newest report of it came
    figures: dict[str, Aggregate] = {}
    iterations: int | None = None  # of the rank that is furthest behind
    last_iteration_unix_ns: int | None = None
    energy_joules: float = 0.0  # of all GPUs since the hub first heard of it
    sample_joules: float | None = None  # where its pods say how many samples an iteration has
    throttled: Throttled = msgspec.field(default_factory=Throttled)
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    lowest_shares: dict[str, float] = {}  # lowest rank over the mean of its peers, by measure
    worst_gpu: WorstGpuFigures | None = None
    unreadable: list[str] = []  # names of hub.proto's Source that some of its pods cannot read
    members: list[RankFigures] | None = None  # where they were asked for


class FleetFigures(msgspec.Struct, frozen=True):
    """All workloads, the largest first."""

    at_unix_ns: int
    interval_ns: int
    workloads: list[WorkloadFigures] = []
