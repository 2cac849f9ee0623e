"""The differences between one kernel's launches: by rank and by stream, each beside the others of its kind.

Guarantees: pure; all parts share one scale, so that their drawings can be compared; a rank is compared with at least
3 others, and communication, which lasts as long as the slowest rank lets it, is not compared.
"""

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Final

from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report import Report
from fleetprof_api.report.report_tables import Histogram, KernelOutlier, KernelStatistics, KernelStream, WorkClassName
from fleetprof_api.slices.kernels import KernelPart, KernelSpread, KernelSpreadSlice

from fleetprof_analyzer.rank.measures.kernels.distribution import count_in_spans, list_pieces
from fleetprof_analyzer.rank.measures.kernels.outlier_rule import FEWEST_OTHERS, LEAST_DIFFERENCE

_SPANS: Final = 48
_MOST_RANKS: Final = 256
_LEAST_DEVIATIONS: Final = 1.0

Kernel = tuple[str, WorkClassName]
OfRanks = Mapping[int, DeviceWorkStatistics]
_Part = KernelStatistics | DeviceWorkStatistics | KernelStream


def make_kernel_spread(report: Report, most: int) -> KernelSpreadSlice:
    """The slice: the spread of at most so many kernels, those with most time."""
    by_kernel = work_by_kernel(report)
    rows = sorted(report.kernels, key=lambda row: -row.total_ns)
    shown = rows[:most]
    return KernelSpreadSlice(
        kernels=[_find_spread(row, by_kernel.get((row.name, row.work_class), {})) for row in shown],
        cut=len(rows) - len(shown),
    )


def _find_spread(kernel: KernelStatistics, of_ranks: OfRanks) -> KernelSpread:
    compared = {one.rank: one for one in compare_ranks((kernel.name, kernel.work_class), of_ranks)}
    parts: list[_Part] = [kernel, *of_ranks.values(), *kernel.streams]
    low = min(part.min_ns for part in parts)
    high = max(low + 1, *(part.p99_ns for part in parts))
    farthest = sorted(of_ranks, key=lambda rank: (-_distance(compared.get(rank)), rank))[:_MOST_RANKS]
    return KernelSpread(
        name=kernel.name,
        work_class=kernel.work_class,
        from_ns=low,
        to_ns=high,
        whole=_describe(kernel, _density(kernel.histogram, low, high)),
        ranks=[
            _describe(row, _density_of_rank(row, low, high), rank=rank, compared=compared.get(rank))
            for rank in sorted(farthest)
            for row in [of_ranks[rank]]
        ],
        rank_count=len(of_ranks),
        streams=[
            _describe(one, _density(one.histogram, low, high), stream=one.stream, compared=one)
            for one in kernel.streams
        ],
    )


def _distance(outlier: KernelOutlier | None) -> int:
    return 0 if outlier is None else abs(outlier.mean_ns - outlier.others_mean_ns)


def work_by_kernel(report: Report) -> dict[Kernel, dict[int, DeviceWorkStatistics]]:
    """Each rank's longest device work, by kernel and rank."""
    found: dict[Kernel, dict[int, DeviceWorkStatistics]] = {}
    for rank in report.ranks:
        for row in rank.device_work:
            if rank.rank is not None:
                found.setdefault((row.name, row.work_class), {})[rank.rank] = row
    return found


def compare_ranks(kernel: Kernel, of_ranks: OfRanks) -> list[KernelOutlier]:
    """Each rank's mean of a kernel against the others' means, as the analyzer does (docs/measures.md#kernels)."""
    if kernel[1] == "communication" or len(of_ranks) <= FEWEST_OTHERS:
        return []
    exact = {rank: row.total_ns / row.count for rank, row in of_ranks.items()}
    center = sum(exact.values()) / len(exact)
    total, squares = (sum((mean - center) ** power for mean in exact.values()) for power in (1, 2))
    others = len(exact) - 1
    found = []
    for rank, mean in exact.items():
        own = mean - center
        around = (total - own) / others
        deviation = sqrt(max(0.0, (squares - own**2) / others - around**2))
        found.append(
            KernelOutlier(
                rank=rank,
                name=kernel[0],
                mean_ns=of_ranks[rank].mean_ns,
                others_mean_ns=int(center + around),
                deviations=round((own - around) / max(deviation, 1.0), 1),
                count=of_ranks[rank].count,
            )
        )
    return found


def stands_out(outlier: KernelOutlier) -> bool:
    """Tells whether a mean is far enough from the others' to be named at all: by a standard deviation and by 5 %."""
    distance = abs(outlier.mean_ns - outlier.others_mean_ns)
    return abs(outlier.deviations) >= _LEAST_DEVIATIONS and distance > LEAST_DIFFERENCE * outlier.others_mean_ns


def _describe(
    part: _Part,
    density: list[int],
    *,
    rank: int | None = None,
    stream: str | None = None,
    compared: KernelStream | KernelOutlier | None = None,
) -> KernelPart:
    return KernelPart(
        rank=rank,
        stream=stream,
        count=part.count,
        total_ns=part.total_ns,
        mean_ns=part.mean_ns,
        min_ns=part.min_ns,
        p25_ns=part.p25_ns,
        p50_ns=part.p50_ns,
        p75_ns=part.p75_ns,
        p99_ns=part.p99_ns,
        max_ns=part.max_ns,
        others_mean_ns=compared.others_mean_ns if compared else None,
        deviations=compared.deviations if compared else None,
        density=density,
    )


def _density(histogram: Histogram, low: int, high: int) -> list[int]:
    """Launches in thousandths by equal spans from `low` to `high`."""
    return _in_thousandths(list_pieces(histogram), low, high)


def _density_of_rank(row: DeviceWorkStatistics, low: int, high: int) -> list[int]:
    """The same of one rank, of which the report keeps fewer spans; empty where it keeps none."""
    width = (row.p99_ns - row.min_ns) / max(1, len(row.density))
    begins = [row.min_ns + number * width for number in range(len(row.density))]
    pieces = [(at, at + width, row.count * part / 1000) for at, part in zip(begins, row.density, strict=True)]
    return _in_thousandths(pieces, low, high) if pieces else []


def _in_thousandths(pieces: Iterable[tuple[float, float, float]], low: int, high: int) -> list[int]:
    return [round(1000 * count) for count in count_in_spans(pieces, low, high, _SPANS)]
