"""The shape of a planted job, its fault, and what a profiler records of one of its stages."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class JobShape:
    """The layout of a job and the content of one iteration."""

    dp: int = 8
    tp: int = 1
    pp: int = 1
    layers: int = 6  # per stage
    microbatches: int = 1
    buckets: int = 3
    iterations: int = 8
    kernel_us: int = 400  # typical kernel
    launch_share: float = 0.3  # host's launch time over the kernels' time
    data_us: int = 1500
    sharded: bool = False  # gather each layer's weights ahead and scatter its gradients (FSDP), instead of buckets
    replicas: int = 1  # of the shards: gradients are scattered among the shards, then reduced over replicas (HSDP)
    close_behind: bool = False  # gradients stand behind the tensor-parallel reduction, beside compute
    beside: bool = False  # gathers and receives wait for their own stream only, not for the compute before them
    stray_ranks: tuple[int, ...] = ()  # (from, to): one tiny send per iteration, beside the program
    asks_loss: bool = True  # the host waits for the device at the end of each iteration
    contention: float = 1.05  # factor on kernels beside a collective, also one that only waits
    meets_on_host: bool = False  # a barrier over gloo after loading data; not in pipelines
    kernel_noise: float = 0.02
    rank_spread: float = 0.006
    host_noise: float = 0.4

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp

    def rank(self, d: int, p: int, t: int) -> int:
        return (d * self.pp + p) * self.tp + t

    def stage(self, p: int) -> np.ndarray:
        """The ranks of one stage, by replica, then by place in the tensor-parallel group."""
        return np.array([self.rank(d, p, t) for d in range(self.dp) for t in range(self.tp)])


@dataclass(frozen=True)
class PlantedFault:
    """The fault that is planted. `rank` is -1 where nobody is at fault; arrays are (ranks, iterations)."""

    kind: str = "none"
    rank: int = -1
    device: np.ndarray | None = None  # factor on kernels
    host: np.ndarray | None = None  # factor on the host's launches
    data_us: np.ndarray | None = None  # more time in the data loader
    pause_us: np.ndarray | None = None  # one pause of the host per iteration
    pause_is_seen: bool = True  # as a frame of the garbage collector
    link_ranks: tuple[int, ...] = ()  # transfers of the groups of these ranks take longer
    link_families: tuple[str, ...] = ("tp", "dp", "pp")
    link_factor: float = 1.0
    stage: int = -1
    stage_factor: float = 1.0
    lengths: np.ndarray | None = None  # (dp, iterations, microbatches): work of a batch
    clock_megahertz: np.ndarray | None = None  # samples of the devices


@dataclass
class Recorded:
    """Rows of one stage:

    parallel lists, one entry per instruction; starts and durations are vectors over its ranks, nan where it has none.
    """

    category: list[str] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    place: list[str] = field(default_factory=list)
    start: list[np.ndarray] = field(default_factory=list)
    duration: list[np.ndarray] = field(default_factory=list)
    correlation: list[int] = field(default_factory=list)
    grid: list[np.ndarray | None] = field(default_factory=list)
    collective: list[tuple[Any, ...] | None] = field(default_factory=list)
    extra: list[tuple[int, str, str, int, int]] = field(
        default_factory=list
    )  # (place in stage, category, name, start, duration)

    def add(
        self,
        category: str,
        name: str,
        place: str,
        start: ArrayLike,
        duration: ArrayLike,
        correlation: int = -1,
        grid: np.ndarray | None = None,
        collective: tuple[Any, ...] | None = None,
    ) -> None:
        self.category.append(category)
        self.name.append(name)
        self.place.append(place)
        self.start.append(np.asarray(start))
        self.duration.append(np.asarray(duration))
        self.correlation.append(correlation)
        self.grid.append(grid)
        self.collective.append(collective)


def without_fault(fault: PlantedFault) -> PlantedFault:
    """The same job as it would have been; what is nobody's fault stays."""
    return replace(PlantedFault(), lengths=fault.lengths) if fault.kind != "pauses_everywhere" else fault


def led_in(shape: JobShape, fault: PlantedFault) -> tuple[JobShape, PlantedFault]:
    """Both with one more iteration before the others, in which the fault is like in most of them."""
    arrays: dict[str, Any] = {
        one.name: np.concatenate((np.median(values, axis=1, keepdims=True), values), axis=1)
        for one in fields(fault)
        if isinstance(values := getattr(fault, one.name), np.ndarray)
    }
    return replace(shape, iterations=shape.iterations + 1), replace(fault, **arrays)
