"""The tables of one report, by columns or by pages."""

from typing import Annotated

from fleetprof_api.report.heterogeneity import RankTable
from fleetprof_api.report.rank_tables import OperatorLaunches
from fleetprof_api.report.report_tables import (
    CommunicationStatistics,
    KernelOutlier,
    KernelStatistics,
    LaunchStatistics,
)
from msgspec import Meta

from fleetprof_webui.models.model import Model, Ns, UnixNs


class RankColumns(Model):
    """All ranks by columns: equal indices are one rank. Formulas: docs/measures.md."""

    rank: list[int | None]
    source: list[str]
    kind: list[str]
    host_name: list[str]
    device_name: list[str]
    iteration_count: list[int]
    measures: Annotated[
        dict[str, list[int | None]],
        Meta(
            description="by name: span, compute, overlapped_communication, exposed_communication, exposed_memory, "
            "idle, unrecorded, idle_*, stage_*, iteration (median), data_loading, lateness in ns; energy in mJ; memory "
            "in bytes; launches. A measure that no rank has is left out."
        ),
    ]
    units: Annotated[dict[str, str], Meta(description="ns, mJ, bytes or count, by measure")]


class IterationSection(Model):
    """The ranks of one kind: `tables[].values[i][j]` is that of `ranks[i]` in `iterations[j]`."""

    kind: str
    ranks: list[int | None]
    iterations: list[int]
    iterations_by: Annotated[str, Meta(description="index: numbers of iterations; position: counted from 0")]
    recorded: Annotated[int, Meta(description="iterations in all; above the columns some are left out")]
    tables: list[RankTable]


class IterationPage(Model):
    """Rank × iteration × measures."""

    sections: list[IterationSection]


class KernelRow(Model):
    """Device work of one name, over all ranks or on one; histogram is null there."""

    statistics: Annotated[KernelStatistics, Meta(description="its streams come without their histograms")]
    outliers: Annotated[
        list[KernelOutlier], Meta(description="ranks where it differs by 1 standard deviation and 5 %, at most 8")
    ]


class KernelPage(Model):
    """A page of kernels. `total_ns` is that of all device work, for shares."""

    rank: Annotated[int | None, Meta(description="null: over all ranks")]
    items: list[KernelRow]
    classes: Annotated[list[KernelStatistics], Meta(description="all work of each class")]
    total: int
    total_ns: int
    next: str | None


class KernelPart(Model):
    """A kernel's launches on one rank or on one stream; of all of them both are null."""

    rank: int | None
    stream: Annotated[str | None, Meta(description="as the trace names it; (other): those that are not listed")]
    count: int
    total_ns: Ns
    mean_ns: Ns
    deviation_ns: Ns
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


class KernelSpread(Model):
    """One kernel by rank and by stream. A rank is there if the kernel is among its 8 longest."""

    name: str
    work_class: str
    from_ns: Annotated[int, Meta(description="the scale of all parts: the shortest launch, ns")]
    to_ns: Annotated[int, Meta(description="the largest 99th percentile of the parts, ns")]
    whole: KernelPart
    ranks: list[KernelPart]
    streams: Annotated[list[KernelPart], Meta(description="the longest first; empty if it ran on one")]


class CommunicationPage(Model):
    """Collectives by kind, group and size, over all ranks."""

    items: list[CommunicationStatistics]


class RankLaunches(Model):
    """The launches of one rank's host."""

    rank: int | None
    source: str
    span_ns: Annotated[int, Meta(description="the rank's device time, busy and idle: what savings are a share of")]
    launches: LaunchStatistics


class LaunchPage(Model):
    """Launches by rank, and the operators that launch most."""

    ranks: list[RankLaunches]
    operators: list[OperatorLaunches]


class SampleSeries(Model):
    """Samples over time; `ranks` are those that share them. Times are ns after `origin_unix_ns` of the page."""

    of: Annotated[str, Meta(description="device or host")]
    host_name: str
    ranks: list[int | None]
    name: str
    unit: str
    at_ns: list[int]
    values: list[float | None]


class SamplePage(Model):
    """Device and host samples."""

    origin_unix_ns: UnixNs | None
    series: list[SampleSeries]
    ranks_with_samples: int
    late: Annotated[list[int], Meta(description="ranks that the report calls late; their series come first")]
