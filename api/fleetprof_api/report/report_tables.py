"""The tables of a report: kernels, communication, copies, launches, stages. Formulas: docs/measures.md.

Guarantees: durations are integer nanoseconds; where a table is cut, its last row holds the rest, so that sums stay
exact.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode

Ns = Annotated[int, Meta(description="duration, ns", ge=0)]
StageName = Literal["data_loading", "forward", "loss", "backward", "zero_grad", "optimizer", "host", "other"]
WorkClassName = Literal["compute", "communication", "memory"]


class Histogram(msgspec.Struct, kw_only=True, frozen=True):
    """Counts of durations: `counts[i]` of them are at least `from_ns[i]` and below `from_ns[i + 1]`, as far as known.

    Buckets are 1/32 of a power of two wide (docs/measures.md#distributions); empty ones are left out.
    """

    from_ns: list[int] = []
    counts: list[int] = []


class KernelStream(msgspec.Struct, kw_only=True, frozen=True):
    """Device work of one name on one stream, over all ranks."""

    stream: Annotated[str, Meta(description="as the trace names it; (other): those that are not listed")]
    count: int
    total_ns: Ns
    mean_ns: Ns
    min_ns: Ns
    max_ns: Ns
    deviation_ns: Annotated[int, Meta(description="standard deviation, ns", ge=0)]
    p25_ns: Annotated[int, Meta(description="quartile, to 1.6 %", ge=0)]
    p50_ns: Annotated[int, Meta(description="median, to 1.6 %", ge=0)]
    p75_ns: Annotated[int, Meta(description="quartile, to 1.6 %", ge=0)]
    p99_ns: Ns
    others_mean_ns: Annotated[
        int | None, Meta(description="mean of the launches on the other streams; null: not compared")
    ] = None
    deviations: Annotated[
        float | None, Meta(description="distance of mean_ns from it, in standard deviations of those launches")
    ] = None
    ranks: Annotated[int, Meta(description="ranks that list this stream for the kernel")]
    histogram: Histogram = msgspec.field(default_factory=Histogram)


class KernelStatistics(msgspec.Struct, kw_only=True, frozen=True):
    """Device work of one name over all ranks."""

    name: Annotated[str, Meta(description="long names are cut, with a checksum; (other) holds all that is not listed")]
    work_class: WorkClassName
    count: int
    total_ns: Ns
    mean_ns: Ns
    min_ns: Ns
    max_ns: Ns
    deviation_ns: Annotated[int, Meta(description="standard deviation, ns", ge=0)]
    p25_ns: Annotated[int | None, Meta(description="quartile, to 1.6 %; null in older reports")] = None
    p50_ns: Annotated[int, Meta(description="median, to 1.6 %", ge=0)]
    p75_ns: Annotated[int | None, Meta(description="quartile, to 1.6 %; null in older reports")] = None
    p90_ns: Ns
    p99_ns: Ns
    ranks: Annotated[int, Meta(description="ranks that list it among their longest")]
    histogram: Histogram = msgspec.field(default_factory=Histogram)
    streams: Annotated[list[KernelStream], Meta(description="the 8 longest, if it ran on several")] = []


class KernelOutlier(msgspec.Struct, kw_only=True, frozen=True):
    """A kernel whose mean duration on one rank is far from that on the others."""

    rank: int
    name: str
    mean_ns: Ns
    others_mean_ns: Annotated[int, Meta(description="mean over the other ranks of their means", ge=0)]
    deviations: Annotated[float, Meta(description="distance in standard deviations of the other ranks' means")]
    count: int


class CommunicationStatistics(msgspec.Struct, kw_only=True, frozen=True):
    """Collectives of one kind, group and size over all ranks. Unknown where the trace does not say: null and ""."""

    kind: Annotated[str, Meta(description="all_reduce, all_gather, …; other")]
    group: Annotated[str, Meta(description="the process group's name")] = ""
    group_size: int | None = None
    data_type: str = ""
    message_bytes: Annotated[int | None, Meta(description="size of the operation as nccl-tests counts it")] = None
    count: Annotated[int, Meta(description="calls, each rank's own")]
    total_ns: Annotated[int, Meta(description="sum of durations, waiting for other ranks included", ge=0)]
    min_ns: Annotated[int, Meta(description="the shortest: the call that waited least", ge=0)]
    overlapped_ns: Annotated[int, Meta(description="of total_ns, while compute ran on the same device", ge=0)]
    algorithm_bytes_per_s: Annotated[int | None, Meta(description="message_bytes / mean duration")] = None
    bus_bytes_per_s: Annotated[int | None, Meta(description="algorithm bandwidth × the kind's bus factor")] = None
    best_bus_bytes_per_s: Annotated[int | None, Meta(description="the same, of the shortest call")] = None
    ranks: int


class CopyStatistics(msgspec.Struct, kw_only=True, frozen=True):
    """Memory copies and sets of one kind on one rank."""

    kind: Annotated[str, Meta(description="HtoD, DtoH, DtoD, PtoP, HtoH, memset, other")]
    pageable: Annotated[bool, Meta(description="from or to host memory that is not pinned")] = False
    count: int
    total_ns: Ns
    bytes: Annotated[int, Meta(description="of those rows that say it", ge=0)]
    bytes_per_s: Annotated[int | None, Meta(description="bytes / time of those rows that say their bytes")] = None


class LaunchStatistics(msgspec.Struct, kw_only=True, frozen=True):
    """The launches of one rank's device work by its host."""

    launches: Annotated[int, Meta(description="rows of device work whose launch call is in the trace")]
    unlaunched: Annotated[int, Meta(description="rows without one", ge=0)] = 0
    calls: Annotated[int, Meta(description="launch calls; a graph launches many rows with one", ge=0)] = 0
    call_p50_ns: Annotated[int, Meta(description="duration of the calls", ge=0)] = 0
    call_p99_ns: Ns = 0
    delay_p50_ns: Annotated[int, Meta(description="end of the call to start of the work, at least 0", ge=0)] = 0
    delay_p90_ns: Ns = 0
    delay_p99_ns: Ns = 0
    short: Annotated[int, Meta(description="rows that ran shorter than their launch call took", ge=0)] = 0
    slow_calls: Annotated[int, Meta(description="calls of more than 1 ms", ge=0)] = 0
    longest_queue: Annotated[int, Meta(description="most rows launched and not begun, on one stream", ge=0)] = 0
    graph_saving_ns: Annotated[
        int, Meta(description="idle time that launching as one graph could save at most", ge=0)
    ] = 0
    maximum_shift_ns: Annotated[
        int | None, Meta(description="how much earlier the last launch could come; null: not measured")
    ] = None
    queue_p50: Annotated[
        int,
        Meta(description="median over rows that waited: rows waiting on its stream, as it was launched", ge=0),
    ] = 0
    full_queue_ns: Annotated[
        int, Meta(description="sum over streams of the time with 1,024 such rows or more", ge=0)
    ] = 0


class StageTime(msgspec.Struct, kw_only=True, frozen=True):
    """One stage of the training loop on one rank, over its iterations. Procedure: docs/measures.md#stages."""

    stage: StageName
    time_ns: Annotated[int, Meta(description="of the main thread; the stages of a rank add up to its iterations", ge=0)]
    device_ns: Annotated[int, Meta(description="sum of durations of device work launched in it", ge=0)] = 0
    device_count: Annotated[int, Meta(description="rows of that work", ge=0)] = 0
    iterations_ns: Annotated[list[int], Meta(description="time_ns by iteration; empty above 100 of them")] = []
    place: Annotated[
        PlaceInCode | None,
        Meta(description="where most of it was, where it is made of operators; null: not known"),
    ] = None


class Silence(msgspec.Struct, kw_only=True, frozen=True):
    """Silences of the host between two rows of the main thread."""

    after: Annotated[str, Meta(description="operator or mark that ended last before it; empty: none")]
    before: Annotated[str, Meta(description="operator or mark that begins first behind it; empty: none")]
    time_ns: Annotated[int, Meta(description="time of these host gaps over all iterations", ge=0)]
    count: Annotated[int, Meta(ge=0)]
    place: Annotated[PlaceInCode | None, Meta(description="where most of it was; null: not sampled")] = None


class LongIterations(msgspec.Struct, kw_only=True, frozen=True):
    """Iterations of one rank that stand apart from its others. Rule: docs/measures.md#long-iterations."""

    positions: Annotated[list[int], Meta(description="in the rank's list of iterations")]
    usual_ns: Annotated[int, Meta(description="median of the others", ge=0)]
    stage: Annotated[
        StageName | None, Meta(description="where most of what they take longer lies; null: in no single stage")
    ] = None
    place: Annotated[PlaceInCode | None, Meta(description="where the thread was then; null: not sampled")] = None


IterationMarks = Literal["optimizer_step", "profiler_step", "named_range", "none"]
"""The marks that bound iterations; named_range: a range that the user named."""
StageBounds = Literal[IterationMarks, "backward"]
"""The same, or repeated backward passes where no mark is there."""


class Stages(msgspec.Struct, kw_only=True, frozen=True):
    """The stages of one rank; `reason` says why there are none."""

    stages: list[StageTime] = []
    iterations: int = 0
    iterations_from: Annotated[
        StageBounds,
        Meta(description="what bounds the iterations; backward: repeated backward passes, where no mark is there"),
    ] = "none"
    inferred: Annotated[
        list[StageName], Meta(description="stages that nothing marks: filled in from their neighbours")
    ] = []
    silences: Annotated[list[Silence], Meta(description="where the stage host lies, the 5 longest places")] = []
    unknown_device_ns: Annotated[int, Meta(description="device work without launch call, or outside", ge=0)] = 0
    loading_place: Annotated[
        PlaceInCode | None, Meta(description="where most of the stage data_loading was; null: not sampled")
    ] = None
    long_iterations: Annotated[
        LongIterations | None, Meta(description="null: none stands apart, or no mark bounds the iterations")
    ] = None
    reason: str = ""


class IdlePlace(msgspec.Struct, kw_only=True, frozen=True):
    """Gaps of one device between work of two names: where most of its idle time of one cause lies."""

    kind: Annotated[str, Meta(description="kind of the finding that it is a part of")]
    time_ns: Annotated[int, Meta(description="idle time of that cause in these gaps", ge=0)]
    count: Annotated[int, Meta(description="these gaps", ge=0)]
    start_ns: Annotated[
        int | None, Meta(description="where the longest of them begins, as `Iteration.start_ns`; null in older reports")
    ] = None
    duration_ns: Annotated[int, Meta(description="its length", ge=0)] = 0
    after_work: Annotated[str, Meta(description="device work that ends where the gap begins; empty: none")] = ""
    after_stream: Annotated[str, Meta(description="the stream of that work")] = ""
    before_work: Annotated[str, Meta(description="device work that ends the gap")] = ""
    before_stream: Annotated[str, Meta(description="the stream of that work")] = ""
    operator: Annotated[str, Meta(description="innermost operator that launched it; empty: none")] = ""
    after: Annotated[
        str, Meta(description="operator that ended last before that launch on its thread; empty: none")
    ] = ""
    before: Annotated[str, Meta(description="outermost operator of that launch, else the next one; empty: none")] = ""
    place: Annotated[PlaceInCode | None, Meta(description="where the host was; null: not sampled")] = None


class CoreUse(msgspec.Struct, kw_only=True, frozen=True):
    """A rank's training thread on the cores of its host, within its iterations, from the agent's samples."""

    sampled_ns: Annotated[int, Meta(description="iterations that the samples cover, ns", ge=0)] = 0
    ran_ns: Annotated[int | None, Meta(description="on a core in them, ns")] = None
    waited_ns: Annotated[int | None, Meta(description="ready to run in them, waiting for a core, ns")] = None
    involuntary_switches: Annotated[int | None, Meta(description="of its process in them: taken off a core")] = None
    usable_cores: Annotated[int | None, Meta(description="the process' affinity")] = None
    cpu_limit_millicores: Annotated[int | None, Meta(description="its control group's quota; null: none")] = None
    torch_threads: Annotated[int | None, Meta(description="threads of PyTorch's operators")] = None
    host_busy_permille: Annotated[
        int | None, Meta(description="how busy all cores of its host were meanwhile, mean; null: not sampled")
    ] = None
