"""The kernel table of a report: over all ranks, or on one; sorted, searched, in pages.

Guarantees: pure; a page is bounded; `total_ns` is that of all device work, also of what is not listed by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report import Report
from fleetprof_api.report.report_tables import Histogram, KernelOutlier, KernelStatistics, KernelStream

from fleetprof_webui.models.tables import KernelPage, KernelRow
from fleetprof_webui.problems import RequestRefused, not_found
from fleetprof_webui.reports.kernel_spread import OfRanks, compare_ranks, stands_out, work_by_kernel

_ALL: Final = "(all)"
_MOST_OUTLIERS: Final = 8
_SORTS: Final[Mapping[str, Callable[[KernelStatistics], int | str]]] = {
    "total": lambda row: row.total_ns,
    "count": lambda row: row.count,
    "mean": lambda row: row.mean_ns,
    "max": lambda row: row.max_ns,
    "p99": lambda row: row.p99_ns,
    "name": lambda row: row.name,
}


@dataclass(frozen=True, slots=True)
class KernelQuery:
    """A query of kernels; `rank` None: over all ranks; `sort` begins with - for descending."""

    rank: int | None
    text: str
    sort: str
    after: str
    limit: int


def find_kernels(report: Report, query: KernelQuery) -> KernelPage:
    """One page. Raises RequestRefused for a rank that is not in the report, or an `after` that is no row."""
    rows, classes = _of_all(report) if query.rank is None else _of_rank(report, query.rank)
    wanted = [row for row in rows if query.text.lower() in row.name.lower()]
    wanted.sort(key=lambda row: row.name)
    wanted.sort(key=_SORTS[query.sort.removeprefix("-")], reverse=query.sort.startswith("-"))
    begin = _read_after(query.after)
    shown = wanted[begin : begin + query.limit]
    return KernelPage(
        rank=query.rank,
        items=_describe(report, shown),
        classes=list(classes),
        total=len(wanted),
        total_ns=sum(row.total_ns for row in classes) or sum(row.total_ns for row in rows),
        next=str(begin + query.limit) if begin + query.limit < len(wanted) else None,
    )


def _of_all(report: Report) -> tuple[Sequence[KernelStatistics], Sequence[KernelStatistics]]:
    return report.kernels, report.kernel_classes


def _of_rank(report: Report, number: int) -> tuple[Sequence[KernelStatistics], Sequence[KernelStatistics]]:
    rank = next((rank for rank in report.ranks if rank.rank == number), None)
    if rank is None:
        raise not_found(f"rank {number} in this report", "leave `rank` out for all ranks")
    rows = [_widen(row) for row in rank.device_work]
    return [row for row in rows if row.name != _ALL], [row for row in rows if row.name == _ALL]


def _widen(row: DeviceWorkStatistics) -> KernelStatistics:
    shared = (name for name in row.__struct_fields__ if name != "density")
    return KernelStatistics(**{name: getattr(row, name) for name in shared}, ranks=1)


def _describe(report: Report, rows: Sequence[KernelStatistics]) -> list[KernelRow]:
    by_kernel = work_by_kernel(report)
    named: dict[str, list[KernelOutlier]] = {}
    for outlier in report.kernel_outliers:
        named.setdefault(outlier.name, []).append(outlier)
    return [
        KernelRow(
            statistics=msgspec.structs.replace(row, streams=[_without_histogram(stream) for stream in row.streams]),
            outliers=_outliers(row, named.get(row.name, []), by_kernel.get((row.name, row.work_class), {})),
        )
        for row in rows
    ]


def _without_histogram(stream: KernelStream) -> KernelStream:
    return msgspec.structs.replace(stream, histogram=Histogram())


def _outliers(row: KernelStatistics, named: Sequence[KernelOutlier], of_ranks: OfRanks) -> list[KernelOutlier]:
    """Outliers that the report names: from 3 standard deviations on, of the ranks' longest kernels from 1 on."""
    found = {one.rank: one for one in compare_ranks((row.name, row.work_class), of_ranks) if stands_out(one)}
    found |= {one.rank: one for one in named}
    far = sorted(found.values(), key=lambda one: (-abs(one.mean_ns - one.others_mean_ns) * one.count, one.rank))
    return far[:_MOST_OUTLIERS]


def _read_after(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or len(after) > 9:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, "`after` is not of this list", "begin again without it", fields=["after"]
        )
    return int(after)
