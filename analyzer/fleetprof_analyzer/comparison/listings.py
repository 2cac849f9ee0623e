"""Kernels and collectives of two reports, per rank and iteration: which of them differ most.

Guarantees: pure; a kernel's verdict takes all its launches of one iteration for one sample, on all ranks together,
which is the most careful that sums allow.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.diff import CollectiveChange, KernelChange, Verdict
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import CommunicationStatistics, KernelStatistics
from fleetprof_api.spoken_names import say_name

from fleetprof_analyzer.comparison.significance import FEWEST
from fleetprof_analyzer.job.student import student_tail

_MOST: Final = 20
_OTHER: Final = "(other)"
# What a kernel must differ by: as a share of its own mean, and in time as a share of the iteration.
_LEAST_OF_MEAN: Final = 0.05
_LEAST_OF_ITERATION: Final = 0.005
_WHOLE_PERMILLE: Final = 900
# By how much neighbours that depend on each other by 0.5 enlarge the variance of a mean.
_INFLATION: Final = 3


def count_windows(ranks: Sequence[Rank]) -> float:
    """Iterations in the ranks' recordings, summed: those listed, or the recording's length over theirs.

    A recording by time holds more than it lists.
    """
    total = 0.0
    for rank in ranks:
        listed = sum(iteration.duration_ns for iteration in rank.iterations)
        recorded = rank.time_ns.span / max(1, len(rank.devices))
        count = len(rank.iterations)
        whole = not listed or 1000 * listed >= _WHOLE_PERMILLE * recorded
        total += count if whole else count * recorded / listed
    return total


def compare_kernels(
    before: Sequence[KernelStatistics],
    after: Sequence[KernelStatistics],
    windows: tuple[float, float],
    iterations: tuple[int, int],
    iteration_ns: float,
    level: float,
) -> list[KernelChange]:
    """The kernels whose time per rank and iteration differs most."""
    first, second = ({row.name: row for row in rows if row.name != _OTHER} for rows in (before, after))
    tested = len(first.keys() & second.keys())
    changes = [
        _compare_kernel(name, first.get(name), second.get(name), windows, iterations, iteration_ns, level, tested)
        for name in first.keys() | second.keys()
    ]
    return sorted(changes, key=lambda change: (-abs(change.difference_ns), change.name))[:_MOST]


def _compare_kernel(
    name: str,
    first: KernelStatistics | None,
    second: KernelStatistics | None,
    windows: tuple[float, float],
    iterations: tuple[int, int],
    iteration_ns: float,
    level: float,
    tested: int,
) -> KernelChange:
    rows = (first, second)
    times = [0.0 if row is None else row.total_ns / each for row, each in zip(rows, windows, strict=True)]
    counts = [0.0 if row is None else row.count / each for row, each in zip(rows, windows, strict=True)]
    p: float | None = None
    verdict: Verdict = "not_judged"
    if first is not None and second is not None and min(iterations) >= FEWEST:
        p = min(1.0, tested * _chance(first, second, iterations))
        matters = abs(second.mean_ns - first.mean_ns) >= _LEAST_OF_MEAN * first.mean_ns and (
            abs(times[1] - times[0]) >= _LEAST_OF_ITERATION * iteration_ns
        )
        verdict = "not_shown"
        if p <= level and matters:
            verdict = "more" if second.mean_ns > first.mean_ns else "less"
    return KernelChange(
        name=name,
        spoken_name=say_name(name),
        before_ns=round(times[0]),
        after_ns=round(times[1]),
        difference_ns=round(times[1] - times[0]),
        before_count=round(counts[0], 3),
        after_count=round(counts[1], 3),
        before_mean_ns=0 if first is None else first.mean_ns,
        after_mean_ns=0 if second is None else second.mean_ns,
        p=None if p is None else round(p, 6),
        verdict=verdict,
    )


def _chance(first: KernelStatistics, second: KernelStatistics, iterations: tuple[int, int]) -> float:
    """Welch's test of two means with as many samples as iterations, which depend on each other; two-sided."""
    variances = [_INFLATION * row.deviation_ns**2 / n for row, n in zip((first, second), iterations, strict=True)]
    # A thousandth of the mean: kernels whose durations do not vary at all are not told apart by their last digits.
    error = sum(variances) ** 0.5 + first.mean_ns / 1000
    if not error:
        return 1.0
    spread = sum(variance**2 / (n - 1) for variance, n in zip(variances, iterations, strict=True))
    freedom = sum(variances) ** 2 / spread if spread else sum(iterations) - 2
    return student_tail(abs(second.mean_ns - first.mean_ns) / error, freedom)


def compare_collectives(
    before: Sequence[CommunicationStatistics],
    after: Sequence[CommunicationStatistics],
    windows: tuple[float, float],
) -> list[CollectiveChange]:
    """The collectives whose time per rank and iteration differs most."""
    sides = [{_key(row): row for row in rows} for rows in (before, after)]
    changes = []
    for key in sides[0].keys() | sides[1].keys():
        rows = [side.get(key) for side in sides]
        times = [0.0 if row is None else row.total_ns / each for row, each in zip(rows, windows, strict=True)]
        counts = [0.0 if row is None else row.count / each for row, each in zip(rows, windows, strict=True)]
        bus = [None if row is None else row.bus_bytes_per_s for row in rows]
        kind, group, group_size, _, message_bytes = key
        changes.append(
            CollectiveChange(
                kind=kind,
                group=group,
                group_size=group_size,
                message_bytes=message_bytes,
                before_ns=round(times[0]),
                after_ns=round(times[1]),
                difference_ns=round(times[1] - times[0]),
                before_count=round(counts[0], 3),
                after_count=round(counts[1], 3),
                before_bus_bytes_per_s=bus[0],
                after_bus_bytes_per_s=bus[1],
            )
        )
    return sorted(changes, key=lambda change: (-abs(change.difference_ns), str(change)))[:_MOST]


def _key(row: CommunicationStatistics) -> tuple[str, str, int | None, str, int | None]:
    return row.kind, row.group, row.group_size, row.data_type, row.message_bytes
