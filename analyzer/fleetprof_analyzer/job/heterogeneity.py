"""Differences between ranks: each measure as a table of ranks and iterations, with a box plot (docs/measures.md).

Guarantees: pure; integers only; at most `MOST_CELLS` values per table whatever the number of iterations, while the
boxes are made of all of them; GPU and CPU-only ranks are never in one table.
"""

from collections.abc import Sequence
from statistics import median_low
from typing import Final, Literal

from fleetprof_api.report.heterogeneity import Box, Heterogeneity, RankTable
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.job.iteration_axis import match_iterations
from fleetprof_analyzer.rank.iteration_measures import MEASURES

MOST_CELLS: Final = 10_000
_MOST_OUTSIDE: Final = 32


def measure_heterogeneity(ranks: Sequence[Rank]) -> list[Heterogeneity]:
    """One section per kind of which at least two ranks list iterations."""
    return [section for kind in ("gpu", "cpu") for section in _compare(ranks, kind)]


def _compare(ranks: Sequence[Rank], kind: Literal["gpu", "cpu"]) -> list[Heterogeneity]:
    chosen = [rank for rank in ranks if rank.kind == kind and rank.iterations]
    if len(chosen) < 2:
        return []
    axis = match_iterations(chosen)
    shown = spread_evenly(len(axis.labels), max(1, MOST_CELLS // len(chosen)))
    tables = []
    for name, (unit, read) in MEASURES.items():
        values = [read(rank) for rank in chosen]
        if any(value for row in values for value in row):
            rows = [axis.place(number, row) for number, row in enumerate(values)]
            tables.append(
                RankTable(
                    measure=name,
                    unit=unit,
                    values=[[row[column] for column in shown] for row in rows],
                    box=_box([(rank.rank, row) for rank, row in zip(chosen, values, strict=True)]),
                )
            )
    return [
        Heterogeneity(
            kind=kind,
            ranks=[rank.rank for rank in chosen],
            iterations=[axis.labels[column] for column in shown],
            iterations_by=axis.by,
            recorded=len(axis.labels),
            tables=tables,
        )
    ]


def spread_evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [number * (count - 1) // max(1, most - 1) for number in range(most)]


def _box(rows: Sequence[tuple[int | None, Sequence[int | None]]]) -> Box | None:
    """The box plot over the ranks' medians; none where fewer than two ranks have a value."""
    known = [(rank, [value for value in row if value is not None]) for rank, row in rows]
    medians = [(median_low(row), rank) for rank, row in known if row]
    if len(medians) < 2:
        return None
    values = sorted(value for value, _ in medians)
    q1, middle, q3 = (quartile(values, number) for number in (1, 2, 3))
    # In halves, so that 1.5 times the box stays an integer.
    low, high = 2 * q1 - 3 * (q3 - q1), 2 * q3 + 3 * (q3 - q1)
    outside = [(value, rank) for value, rank in medians if not low <= 2 * value <= high]
    outside.sort(key=lambda item: (-abs(item[0] - middle), -1 if item[1] is None else item[1]))
    return Box(
        min=values[0],
        low_whisker=min(value for value in values if 2 * value >= low),
        q1=q1,
        median=middle,
        q3=q3,
        high_whisker=max(value for value in values if 2 * value <= high),
        max=values[-1],
        outside=[rank for _, rank in outside if rank is not None][:_MOST_OUTSIDE],
        outside_count=len(outside),
    )


def quartile(ordered: Sequence[int], number: int) -> int:
    """The number-th quartile of n ordered values: at (n - 1) number / 4, between neighbours in proportion; floored."""
    whole, part = divmod((len(ordered) - 1) * number, 4)
    if not part:
        return ordered[whole]
    return ordered[whole] + (ordered[whole + 1] - ordered[whole]) * part // 4
