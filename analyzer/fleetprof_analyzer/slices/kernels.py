"""Device work by name: over all ranks, and on each.

Guarantees: pure; `total_ns` is that of all device work, also of what is not listed by name.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from fleetprof_api.report.report import Report
from fleetprof_api.report.report_tables import Histogram, KernelOutlier, KernelStatistics
from fleetprof_api.slices.kernels import KernelRow, KernelSlice, RankKernelSlice, RankWork
from fleetprof_api.spoken_names import say_name

from fleetprof_analyzer.slices.chosen_ranks import choose_ranks
from fleetprof_analyzer.slices.distributions import count_bars
from fleetprof_analyzer.slices.kernel_spread import OfRanks, compare_ranks, stands_out, work_by_kernel
from fleetprof_analyzer.words.text import plain

_MOST_OUTLIERS: Final = 8
_MOST_BARS: Final = 200
"""The kernels with a picture of their durations."""
_MOST_PATTERN: Final = 60


def make_kernels(report: Report, most: int) -> KernelSlice:
    """The slice, with at most so many kernels."""
    by_kernel = work_by_kernel(report)
    named: dict[str, list[KernelOutlier]] = {}
    for outlier in report.kernel_outliers:
        named.setdefault(outlier.name, []).append(outlier)
    rows = sorted(report.kernels, key=lambda row: -row.total_ns)[:most]
    return KernelSlice(
        rows=[
            KernelRow(
                spoken_name=say_name(row.name),
                statistics=_without_histograms(row),
                outliers=_outliers(row, named.get(row.name, []), by_kernel.get((row.name, row.work_class), {})),
                bars=count_bars(row.histogram) if place < _MOST_BARS else [],
            )
            for place, row in enumerate(rows)
        ],
        classes=[_without_histograms(row) for row in report.kernel_classes],
        total_ns=sum(row.total_ns for row in report.kernel_classes) or sum(row.total_ns for row in report.kernels),
        asked_classes=[
            f"{plain(one.pattern, _MOST_PATTERN)} is {one.work_class}" for one in report.asked_kernel_classes
        ],
        cut=len(report.kernels) - len(rows),
    )


def make_rank_kernels(report: Report, most: int) -> RankKernelSlice:
    """The slice, with at most so many ranks."""
    ranks = choose_ranks(report, most)
    return RankKernelSlice(
        ranks=[
            RankWork(rank=rank.rank, work=[msgspec.structs.replace(row, density=[]) for row in rank.device_work])
            for rank in ranks
            if rank.device_work
        ],
        cut=len(report.ranks) - len(ranks),
    )


def _without_histograms(row: KernelStatistics) -> KernelStatistics:
    streams = [msgspec.structs.replace(stream, histogram=Histogram()) for stream in row.streams]
    return msgspec.structs.replace(row, histogram=Histogram(), streams=streams)


def _outliers(row: KernelStatistics, named: Sequence[KernelOutlier], of_ranks: OfRanks) -> list[KernelOutlier]:
    """Outliers that the report names: from 3 standard deviations on, of the ranks' longest kernels from 1 on."""
    found = {one.rank: one for one in compare_ranks((row.name, row.work_class), of_ranks) if stands_out(one)}
    found |= {one.rank: one for one in named}
    far = sorted(found.values(), key=lambda one: (-abs(one.mean_ns - one.others_mean_ns) * one.count, one.rank))
    return far[:_MOST_OUTLIERS]
