"""The slices of device work by name: over all ranks, on each rank, and how the launches of one name spread."""

from typing import Annotated

from msgspec import Meta

from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report_tables import KernelOutlier, KernelStatistics
from fleetprof_api.slices.slice import Ns, Slice, SlicePart


class KernelRow(SlicePart):
    """Device work of one name over all ranks."""

    spoken_name: Annotated[str, Meta(description="its name as people say it, for display")]
    statistics: Annotated[KernelStatistics, Meta(description="without its histograms and those of its streams")]
    outliers: Annotated[
        list[KernelOutlier], Meta(description="ranks where it differs by 1 standard deviation and 5 %, at most 8")
    ]
    bars: Annotated[
        list[int], Meta(description="launches by equal factors of time from min_ns to max_ns; empty: not kept")
    ]


class KernelSlice(Slice):
    """Device work by name, the most time first. `total_ns` is that of all device work, for shares."""

    rows: list[KernelRow]
    classes: Annotated[list[KernelStatistics], Meta(description="all work of each class, without histograms")]
    total_ns: int
    asked_classes: Annotated[list[str], Meta(description="classes of kernels from the request, in words")]


class RankWork(SlicePart):
    """One rank's work: each class, named (all), then its longest kernels."""

    rank: int | None
    work: Annotated[list[DeviceWorkStatistics], Meta(description="without their densities")]


class RankKernelSlice(Slice):
    """The longest device work of each rank by itself."""

    ranks: list[RankWork]


class KernelPart(SlicePart):
    """A kernel's launches on one rank or on one stream; of all of them both are null."""

    rank: int | None
    stream: Annotated[str | None, Meta(description="as the trace names it; (other): those that are not listed")]
    count: int
    total_ns: Ns
    mean_ns: Ns
    min_ns: Ns
    p25_ns: Annotated[int | None, Meta(description="quartile, ns; null in older reports")]
    p50_ns: Ns
    p75_ns: Annotated[int | None, Meta(description="quartile, ns; null in older reports")]
    p99_ns: Ns
    max_ns: Ns
    others_mean_ns: Annotated[
        int | None,
        Meta(description="of the other streams' launches, or of the other ranks' means; null: not compared"),
    ]
    deviations: Annotated[float | None, Meta(description="distance of mean_ns from it, in standard deviations of them")]
    density: Annotated[
        list[int],
        Meta(description="thousandths of launches in equal spans from from_ns to to_ns; empty where none are kept"),
    ]


class KernelSpread(SlicePart):
    """One kernel by rank and by stream. A rank is there if the kernel is among its 8 longest."""

    name: str
    work_class: str
    from_ns: Annotated[int, Meta(description="the scale of all parts: the shortest launch, ns")]
    to_ns: Annotated[int, Meta(description="the largest 99th percentile of the parts, ns")]
    whole: KernelPart
    ranks: Annotated[list[KernelPart], Meta(description="at most 256, those farthest from the others")]
    rank_count: int
    streams: Annotated[list[KernelPart], Meta(description="the longest first; empty if it ran on one")]


class KernelSpreadSlice(Slice):
    """The spread of the kernels with most time."""

    kernels: list[KernelSpread]
