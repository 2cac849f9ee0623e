"""The shape of a simulated job, and its fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DynamicShapes:
    """Batches of other shapes on each rank and in each iteration (dynamic.py), and what a recorder says of them."""

    spread: float = 0.2  # of the logarithm of a batch's tokens
    tokens: float = 1.0  # usual ones of a batch
    experts: int = 0  # of each rank, in place of dense layers
    expert_spread: float = 0.2  # of what a rank's experts get in a layer
    evenness: float = 4.0  # with which it is divided among them
    grouped: bool = False  # one kernel for all experts of a layer
    skips: bool = False  # an expert with hardly any tokens launches nothing
    quadratic: bool = False  # attention over padded lengths
    tiles: bool = False  # names carry the tile, which depends on the shape
    tile_border: float = 1.0  # of the usual rows
    tuned: bool = False  # names and grids carry what each rank's autotuner chose
    fixed_grids: bool = False  # matrix products are persistent: as many blocks whatever the shape
    says_grids: bool = True
    says_inputs: bool = False  # shapes of operators are recorded
    host_rows: bool = True


@dataclass(frozen=True)
class LoopShape:
    """A training loop (loops.py, pipelines.py), the ranks that run it, and how steady machines and network are."""

    loop: str
    dp: int = 1
    tp: int = 1
    pp: int = 1
    shards: int = 1  # ranks that share the weights; dp counts the replicas then
    layers: int = 4
    microbatches: int = 4
    chunks: int = 1  # of the model on each stage; more than one are interleaved
    accumulation: int = 1
    buckets: int = 2
    iterations: int = 10
    warm: int = 2  # iterations before the recording
    kernel_us: float = 120.0
    host_us: float = 7.0  # per launch
    net_us: float = 150.0  # per transfer
    asks_loss: bool = True  # the host waits for its device after each iteration
    holds_gathers: bool = True  # no more than two layers' weights are gathered ahead
    pageable: bool = False  # copies of the batch block the host
    last_stage: float = 1.1  # its work over that of the others
    kernel_noise: float = 0.015
    rank_spread: float = 0.005
    host_noise: float = 0.3
    net_noise: float = 0.05
    algorithm: str = ""  # "ring", "tree": how a transfer takes longer with more members; none: it does not
    hop_us: float = 1.5  # of the latency of an algorithm
    per_node: int = 8  # devices
    contention: float = 1.0  # factor on kernels beside a collective
    marks: str = "profiler_step"  # or "optimizer": only its annotation
    tells: str = (
        "sequence"  # what kernels say of their collective: all, "group" without its number, "host": operators say it
    )
    names_first: bool = False  # the kernel of a batch of sends tells of the first; else of none
    synchronizes: bool = True  # the host waits for its device behind each batch of sends
    launches: bool = True  # calls of the runtime are recorded
    annotates: bool = True  # a recommender's pipeline names its stages
    dynamic: DynamicShapes | None = None
    faster: Mapping[str, float] = field(default_factory=dict)  # by how much kernels whose names begin like that are
    graphs: bool = False  # work comes from CUDA graphs: the host takes no time between launches
    load: float = 1.0  # factor on what the data loader takes
    optimizer: float = 1.0  # factor on the optimizer's kernels: the part of the weights that a rank holds

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp * self.shards


@dataclass(frozen=True)
class SimulatedFault:
    """The fault that is planted; `rank` is -1 where nobody is at fault.

    `of_iterations` holds factors, or µs of loading or pausing, by iteration.
    """

    kind: str = "none"
    rank: int = -1
    factor: float = 1.0
    of_iterations: dict[int, float] = field(default_factory=dict)
    places: dict[int, float] = field(default_factory=dict)  # where in the iteration a pause strikes, 0 to 1
    groups: tuple[str, ...] = ()  # whose names begin like that
    ranks: tuple[int, ...] = ()


def of_run(run: int) -> tuple[int, ...]:
    """The part of a seed that another run of the same job has of its own."""
    return (run,) if run else ()
