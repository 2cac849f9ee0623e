"""The kernel table of a report: over all ranks, or on one; sorted, searched, in pages.

Guarantees: pure; a page is bounded; `total_ns` is that of all device work, also of what is not listed by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report import Report
from fleetprof_api.report.report_tables import KernelOutlier, KernelStatistics

from fleetprof_webui.models.tables import KernelPage, KernelRow
from fleetprof_webui.problems import RequestRefused, not_found

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
    """What is looked for; `rank` None: over all ranks; `sort` begins with - for descending."""

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
        items=[KernelRow(statistics=row, outliers=_outliers(report, row.name)) for row in shown],
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
    return KernelStatistics(
        **{name: getattr(row, name) for name in row.__struct_fields__},
        ranks=1,
    )


def _outliers(report: Report, name: str) -> list[KernelOutlier]:
    return [one for one in report.kernel_outliers if one.name == name][:_MOST_OUTLIERS]


def _read_after(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or len(after) > 9:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, "`after` is not of this list", "begin again without it", fields=["after"]
        )
    return int(after)
